// Bytes through blobs: admission, capacity, order, ends. Limits are small, so that each is in
// reach.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sketch/test_guest.h"

namespace bulkhead::sketch {
namespace {

class BlobTest : public HubTest {
 protected:
  void SetUp() override { OpenSmall(); }
};

TEST_F(BlobTest, CreationNeedsSuspensionAndReservesAtOnce) {
  const Token create = guest_->Start(Kind::kBlobCreate);
  EXPECT_EQ(guest_->Poll(create), 0);
  EXPECT_EQ(hub_->Snapshot().live_blobs, 1u);
  EXPECT_NE(guest_->Await(create), std::nullopt);
}

TEST_F(BlobTest, LiveBlobsAreLimited) {
  std::vector<Token> blobs = {guest_->NewBlob(), guest_->NewBlob(), guest_->NewBlob()};
  EXPECT_EQ(guest_->Start(Kind::kBlobCreate), 0u);
  EXPECT_EQ(guest_->Close(blobs[1]), 0);
  EXPECT_EQ(guest_->Close(blobs[1]), 1) << "closed already";
  EXPECT_NE(guest_->NewBlob(), 0u);
}

TEST_F(BlobTest, ZeroCountsDisableAdmission) {
  HubLimits limits = Small();
  limits.blobs = 0;
  Open({.limits = limits});
  EXPECT_EQ(guest_->Start(Kind::kBlobCreate), 0u);
  limits = Small();
  limits.pending_reads = 0;
  limits.pending_writes = 0;
  Open({.limits = limits});
  const Token blob = guest_->NewBlob();
  EXPECT_EQ(guest_->Read(blob, 1), 0u);
  EXPECT_EQ(guest_->Write(blob, 0, 1), 0u);
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 1), 1) << "nothing is pending";
}

TEST_F(BlobTest, AWriteThatFitsIsCompleteAtTheFirstPoll) {
  const Token blob = guest_->NewBlob();
  const Token write = guest_->Write(blob, 7, kChunk);
  EXPECT_EQ(guest_->Poll(write), Packed(1, OperationStatus::kCompleted));
  const Token read = guest_->Read(blob, kChunk);
  EXPECT_EQ(guest_->Poll(read), kPackedError) << "reads are collected, not polled";
  EXPECT_EQ(Collected(read), Written(7, kChunk));
  EXPECT_EQ(guest_->Collect(read, 0, kChunk), kPackedError) << "once";
}

TEST_F(BlobTest, BytesAreCopiedWhenSubmitted) {
  const Token blob = FullBlob();
  const std::vector<std::uint8_t> before = Written(0, kChunk);
  const Token write = guest_->Write(blob, 0, kChunk);
  EXPECT_EQ(guest_->Poll(write), 0) << "it waits";
  std::ranges::fill(guest_->bytes(), std::uint8_t{0});
  for (int i = 0; i < 4; ++i) {
    Collected(guest_->Read(blob, kChunk));
  }
  EXPECT_EQ(guest_->Status(write), OperationStatus::kCompleted);
  EXPECT_EQ(Collected(guest_->Read(blob, kChunk)), before);
}

TEST_F(BlobTest, ArgumentsAreChecked) {
  const Token blob = guest_->NewBlob();
  EXPECT_EQ(guest_->Read(blob, 0), 0u);
  EXPECT_EQ(guest_->Read(blob, kChunk + 1), 0u);
  EXPECT_EQ(guest_->Write(blob, 0, kChunk + 1), 0u);
  EXPECT_EQ(guest_->Write(blob, TestGuest::kMemoryBytes - 1, 2), 0u);
  EXPECT_EQ(guest_->Write(blob, 0xffff'ffff, 1), 0u);
  EXPECT_EQ(guest_->Start(Kind::kBlobSeal, blob, 1), 0u);
  EXPECT_EQ(guest_->Submit(Kind::kAbandonBlob, blob, 1), 0);
  EXPECT_EQ(hub_->Snapshot().live_operations, 0u);
}

TEST_F(BlobTest, DefaultChunkIsTheBoundOfTheContract) {
  Open({.limits = {.chunk_bytes = 128 * 1024}});
  const Token blob = guest_->NewBlob();
  EXPECT_EQ(guest_->Read(blob, kTransferBytesMax + 1), 0u);
  EXPECT_NE(guest_->Read(blob, kTransferBytesMax), 0u);
  EXPECT_EQ(guest_->Write(blob, 0, kTransferBytesMax + 1), 0u);
}

TEST_F(BlobTest, AReadTakesItsBytesWhenReadyNotWhenCollected) {
  const Token blob = FullBlob();
  const Token waiting = guest_->Write(blob, 0, kChunk);
  const Token read = guest_->Read(blob, kChunk);
  EXPECT_EQ(guest_->Status(waiting), OperationStatus::kCompleted);
  EXPECT_EQ(hub_->Snapshot().retained_bytes, kBlob + kChunk);
  Collected(read);
  EXPECT_EQ(hub_->Snapshot().retained_bytes, kBlob);
}

TEST_F(BlobTest, ReadsGatherSmallPieces) {
  const Token blob = guest_->NewBlob();
  for (std::uint32_t at = 0; at < kChunk; ++at) {
    ASSERT_EQ(guest_->StreamWrite(blob, at, 1), 1);
  }
  EXPECT_EQ(hub_->Snapshot().retained_bytes, kChunk);
  EXPECT_EQ(Collected(guest_->Read(blob, 60)), Written(0, 60));
  EXPECT_EQ(Collected(guest_->Read(blob, 60)), Written(60, 40)) << "fewer than asked for";
  EXPECT_EQ(hub_->Snapshot().retained_bytes, 0u) << "an emptied queue holds nothing";
}

TEST_F(OneShot, G15AShortDestinationKeepsTheResult) {
  OpenSmall();
  const Token blob = FullBlob();
  const Token read = guest_->Read(blob, kChunk);
  EXPECT_EQ(guest_->Collect(read, 0, kChunk - 1), kPackedError);
  EXPECT_EQ(guest_->Collect(read, TestGuest::kMemoryBytes - 1, kChunk), kPackedError);
  EXPECT_EQ(Collected(read), Written(0, kChunk));
}

TEST_F(OneShot, G15CollectingAnEmptyReadIsPending) {
  OpenSmall();
  const Token blob = guest_->NewBlob();
  const Token read = guest_->Read(blob, kChunk);
  EXPECT_EQ(guest_->Collect(read, 0, kChunk), Packed(0, OperationStatus::kPending));
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 10), 10);
  EXPECT_EQ(Collected(read), Written(0, 10));
}

TEST_F(OneShot, G16OneBlobHoldsItsLimit) {
  OpenSmall();
  const Token blob = FullBlob();
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 1), 0);
  const Token write = guest_->Write(blob, 0, 1);
  EXPECT_EQ(guest_->Poll(write), 0);
  // Capacity counts what is allocated, and what is read of a segment is given back when needed.
  EXPECT_EQ(guest_->StreamRead(blob, kTarget, 1), 1);
  EXPECT_EQ(guest_->Status(write), OperationStatus::kCompleted);
  EXPECT_EQ(hub_->Snapshot().retained_bytes, kBlob);
}

TEST_F(OneShot, G16AllBlobsTogetherHoldTheirLimit) {
  OpenSmall();
  const Token first = FullBlob();
  const Token second = guest_->NewBlob();
  EXPECT_EQ(guest_->StreamWrite(second, 0, kChunk), 100);
  EXPECT_EQ(guest_->StreamWrite(second, 0, kChunk), 100);
  EXPECT_EQ(guest_->StreamWrite(second, 0, kChunk), 0);
  const Token waiting = guest_->Write(second, 0, kChunk);
  EXPECT_EQ(guest_->Poll(waiting), 0);
  EXPECT_EQ(guest_->Close(first), 0);
  EXPECT_EQ(guest_->Status(waiting), OperationStatus::kCompleted) << "closing wakes others";
}

TEST_F(OneShot, G16PendingCountsAreLimited) {
  OpenSmall();
  const Token blob = FullBlob();
  for (int i = 0; i < 5; ++i) {
    ASSERT_NE(guest_->Write(blob, 0, 1), 0u);
  }
  EXPECT_EQ(guest_->Write(blob, 0, 1), 0u);
  const Token empty = guest_->NewBlob();
  Token read = 0;
  for (int i = 0; i < 3; ++i) {
    read = guest_->Read(empty, 1);
    ASSERT_NE(read, 0u);
  }
  EXPECT_EQ(guest_->Read(empty, 1), 0u);
  EXPECT_EQ(guest_->Submit(Kind::kAbandonTransfer, read), 1);
  EXPECT_NE(guest_->Read(empty, 1), 0u);
}

// 400 in the blob, 5 writes of 100 waiting: 900, and the last chunk of 1000 is the readers'.
TEST_F(OneShot, G16WritersLeaveOneChunkToReaders) {
  HubLimits limits = Small();
  limits.pending_writes = 100;
  Open({.limits = limits});
  const Token blob = FullBlob();
  for (int i = 0; i < 5; ++i) {
    ASSERT_NE(guest_->Write(blob, 0, kChunk), 0u);
  }
  EXPECT_EQ(hub_->Snapshot().retained_bytes, kRetained - kChunk);
  EXPECT_EQ(guest_->Write(blob, 0, 1), 0u);
  // A read that needs memory of its own gets it out of the reserve.
  const Token partial = guest_->Read(blob, kChunk / 2);
  EXPECT_EQ(Collected(partial).size(), kChunk / 2);
}

TEST_F(OneShot, G16WaitingBytesAreLimitedToThoseOfAllBlobs) {
  HubLimits limits = Small();
  limits.pending_writes = 100;
  limits.retained_bytes = 10'000;
  Open({.limits = limits});
  const Token blob = FullBlob();
  for (int i = 0; i < 6; ++i) {
    ASSERT_NE(guest_->Write(blob, 0, kChunk), 0u) << i;
  }
  EXPECT_EQ(guest_->Write(blob, 0, 1), 0u);
}

// Uncollected results fill the total: the next read waits until one is collected.
TEST_F(OneShot, G16AReadWaitsForTheTotal) {
  OpenSmall();
  const Token blob = guest_->NewBlob();
  std::vector<Token> reads;
  while (hub_->Snapshot().retained_bytes < kRetained) {
    const auto room = static_cast<std::int32_t>(
        std::min<std::uint64_t>(kChunk, kRetained - hub_->Snapshot().retained_bytes));
    if (guest_->StreamWrite(blob, 0, room) == 0) {
      break;
    }
    reads.push_back(guest_->Read(blob, kChunk));
  }
  ASSERT_EQ(reads.size(), 9u);
  ASSERT_EQ(guest_->StreamWrite(blob, 0, 1), 0) << "only the reserve is left";
  EXPECT_EQ(Collected(reads.front()).size(), kChunk);
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 100), 100);
}

TEST_F(OneShot, G16ALaterWriteNeverOvertakes) {
  OpenSmall();
  const Token blob = FullBlob();
  const Token large = guest_->Write(blob, 1000, kChunk);
  EXPECT_EQ(guest_->StreamRead(blob, kTarget, 50), 50);
  const Token small = guest_->Write(blob, 2000, 10);
  EXPECT_EQ(guest_->Poll(large), 0);
  EXPECT_EQ(guest_->Poll(small), 0) << "there is room, but not its turn";
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 1), 0) << "neither may a direct write";
  EXPECT_EQ(guest_->StreamRead(blob, kTarget, 50), 50);
  EXPECT_EQ(guest_->Status(large), OperationStatus::kCompleted);
  EXPECT_EQ(guest_->Poll(small), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(guest_->StreamRead(blob, kTarget, kChunk), 100);
  }
  EXPECT_EQ(guest_->Status(small), OperationStatus::kCompleted);
  EXPECT_EQ(Collected(guest_->Read(blob, kChunk)), Written(1000, kChunk));
  EXPECT_EQ(Collected(guest_->Read(blob, kChunk)), Written(2000, 10));
}

TEST_F(OneShot, G16ReadsAreServedInOrder) {
  OpenSmall();
  const Token blob = guest_->NewBlob();
  const Token first = guest_->Read(blob, 10);
  const Token second = guest_->Read(blob, 10);
  EXPECT_EQ(guest_->StreamRead(blob, kTarget, 1), 0);
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 15), 15);
  EXPECT_EQ(Collected(second), Written(10, 5));
  EXPECT_EQ(Collected(first), Written(0, 10));
}

TEST_F(OneShot, G16SealIsTheEnd) {
  OpenSmall();
  const Token blob = FullBlob();
  const Token pending = guest_->Write(blob, 0, kChunk);
  const Token seal = guest_->Start(Kind::kBlobSeal, blob);
  EXPECT_EQ(guest_->Poll(seal), Packed(1, OperationStatus::kCompleted));
  EXPECT_EQ(guest_->Status(pending), OperationStatus::kClosed);
  EXPECT_EQ(guest_->Status(guest_->Write(blob, 0, 1)), OperationStatus::kClosed);
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 1), -1);
  EXPECT_EQ(guest_->Status(guest_->Start(Kind::kBlobSeal, blob)), OperationStatus::kRejected);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Collected(guest_->Read(blob, kChunk)).size(), kChunk) << "what it holds stays";
  }
  EXPECT_EQ(Collected(guest_->Read(blob, kChunk)).size(), 0u);
}

TEST_F(OneShot, G16AnEndOfFileReadWaitsForTheSeal) {
  OpenSmall();
  const Token blob = guest_->NewBlob();
  const Token read = guest_->Read(blob, kChunk);
  EXPECT_EQ(guest_->Collect(read, kTarget, 0), Packed(0, OperationStatus::kPending));
  EXPECT_TRUE(guest_->Seal(blob));
  EXPECT_EQ(guest_->Collect(read, kTarget, 0), Packed(0, OperationStatus::kCompleted));
}

TEST_F(OneShot, G16CancelAndAbandonGiveEverythingBack) {
  OpenSmall();
  const Token blob = FullBlob();
  const Token blocked = guest_->Write(blob, 0, kChunk);
  const Token behind = guest_->Write(blob, 0, 1);
  EXPECT_EQ(guest_->StreamRead(blob, kTarget, 1), 1);
  EXPECT_EQ(guest_->Cancel(blocked), 1);
  EXPECT_EQ(guest_->Status(blocked), OperationStatus::kCancelled);
  EXPECT_EQ(guest_->Status(behind), OperationStatus::kCompleted) << "nothing is before it now";
  const Token empty = guest_->NewBlob();
  const Token read = guest_->Read(empty, 1);
  EXPECT_EQ(guest_->Cancel(read), 1);
  EXPECT_EQ(guest_->Collect(read, 0, 1), Packed(0, OperationStatus::kCancelled));
  const Token done = guest_->Read(blob, kChunk);
  EXPECT_EQ(guest_->Submit(Kind::kAbandonTransfer, done, 1), 0);
  EXPECT_EQ(guest_->Submit(Kind::kAbandonTransfer, done), 1) << "an uncollected result too";
  EXPECT_EQ(guest_->Submit(Kind::kAbandonBlob, blob), 1);
  EXPECT_EQ(hub_->Snapshot().retained_bytes, 0u);
  EXPECT_EQ(hub_->Snapshot().live_operations, 0u);
}

TEST_F(OneShot, G16CloseEndsWhatWaits) {
  OpenSmall();
  const Token blob = FullBlob();
  const Token write = guest_->Write(blob, 0, kChunk);
  const Token result = guest_->Read(blob, kChunk);
  const Token waiting = guest_->Write(blob, 0, kChunk);
  EXPECT_EQ(guest_->Status(write), OperationStatus::kCompleted);
  EXPECT_EQ(guest_->Close(blob), 0);
  EXPECT_EQ(guest_->Status(waiting), OperationStatus::kClosed);
  EXPECT_EQ(Collected(result).size(), kChunk) << "it was the guest's already";
  EXPECT_EQ(hub_->Snapshot().retained_bytes, 0u);
}

TEST_F(OneShot, G16EndOfAnOwnerFreesCapacityForOthers) {
  OpenSmall();
  TestGuest child(*hub_, 1);
  const Token childs = child.NewBlob();
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(child.StreamWrite(childs, 0, kChunk), 100);
  }
  const Token blob = guest_->NewBlob();
  EXPECT_EQ(guest_->StreamWrite(blob, 0, kChunk), 100);
  EXPECT_EQ(guest_->StreamWrite(blob, 0, kChunk), 100);
  const Token waiting = guest_->Write(blob, 0, kChunk);
  EXPECT_EQ(guest_->Poll(waiting), 0);
  hub_->OwnerExited(1);
  EXPECT_EQ(guest_->Status(waiting), OperationStatus::kCompleted);
}

TEST_F(BlobTest, EmptyTransfersAreLegal) {
  const Token blob = guest_->NewBlob();
  EXPECT_EQ(guest_->Status(guest_->Write(blob, 0, 0)), OperationStatus::kCompleted);
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 0), 0);
  EXPECT_EQ(guest_->StreamRead(blob, TestGuest::kMemoryBytes, 0), 0);
}

TEST_F(BlobTest, DirectTransfersTrapOnBadRanges) {
  const Token blob = guest_->NewBlob();

  struct Row {
    std::uint32_t address;
    std::int32_t bytes;
    Trap trap;
  };

  for (const Row& row : {Row{0, -1, Trap::kInvalidLength}, Row{0, 65'537, Trap::kInvalidLength},
                         Row{TestGuest::kMemoryBytes, 1, Trap::kOutOfBounds},
                         Row{0xffff'ffff, 65'536, Trap::kOutOfBounds}}) {
    for (const Token token : {blob, Token{0}}) {
      const auto read =
          hub_->StreamRead(kRootOwner, token, row.address, row.bytes, guest_->memory());
      const auto write =
          hub_->StreamWrite(kRootOwner, token, row.address, row.bytes, guest_->memory());
      ASSERT_FALSE(read);
      ASSERT_FALSE(write);
      EXPECT_EQ(read.error(), row.trap);
      EXPECT_EQ(write.error(), row.trap);
    }
  }
}

TEST_F(BlobTest, DirectTransfersMoveAtMostOneChunk) {
  const Token blob = guest_->NewBlob();
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 3 * kChunk), 100);
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 10), 10);
  EXPECT_EQ(guest_->StreamRead(blob, kTarget, 3 * kChunk), 100);
  EXPECT_EQ(guest_->StreamRead(blob, kTarget, 3 * kChunk), 10);
  EXPECT_EQ(guest_->StreamRead(blob, kTarget, 3 * kChunk), 0);
}

// 64 MiB in pairs of 64 KiB: nothing is ever held twice, every byte arrives.
TEST_F(OneShot, G18SixtyFourMiBThroughOneBlob) {
  constexpr std::uint32_t kPiece = 64 * 1024;
  const Token blob = guest_->NewBlob();
  for (std::uint32_t i = 0; i < 1024; ++i) {
    guest_->bytes()[0] = static_cast<std::uint8_t>(i);
    ASSERT_EQ(guest_->Status(guest_->Write(blob, 0, kPiece)), OperationStatus::kCompleted);
    const Token read = guest_->Read(blob, kPiece);
    ASSERT_EQ(guest_->Collect(read, kTarget & ~kPiece, kPiece),
              Packed(kPiece, OperationStatus::kCompleted));
    const auto in = guest_->bytes().begin();
    ASSERT_TRUE(std::equal(in, in + kPiece, in + (kTarget & ~kPiece)));
  }
  EXPECT_EQ(hub_->Snapshot().retained_bytes_peak, kPiece);
  EXPECT_EQ(hub_->Snapshot().retained_bytes, 0u);
}

}  // namespace
}  // namespace bulkhead::sketch
