// Operations, ownership and refusals: what does not move bytes.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "sketch/sha256.h"
#include "sketch/test_guest.h"

namespace bulkhead::sketch {
namespace {

constexpr Owner kChild = 1;

TEST_F(HubTest, UnknownKindsTrap) {
  for (const std::int32_t kind : {0, -1, 49, 1 << 30}) {
    const auto answer = hub_->Submit(kRootOwner, kind, 0, 0, guest_->memory());
    ASSERT_FALSE(answer) << kind;
    EXPECT_EQ(answer.error(), Trap::kUnknownKind);
  }
}

TEST_F(HubTest, AbsentCapabilitiesAnswerRefused) {
  for (std::int32_t kind = 13; kind <= kKindMax; ++kind) {
    if (AvailableKind(kind)) {
      continue;
    }
    EXPECT_EQ(hub_->Submit(kRootOwner, kind, 1, 1, guest_->memory()), kRefused) << kind;
  }
  EXPECT_EQ(guest_->Poll(kRefused), kPackedError) << "which is no operation";
  EXPECT_EQ(guest_->Submit(Kind::kOutputGrant), kRefused) << "no output was granted";
}

TEST_F(HubTest, SyntheticOperationsStayPendingUntilTheGuestSuspends) {
  const Token yield = guest_->Start(Kind::kSyntheticYield);
  EXPECT_EQ(guest_->Poll(yield), Packed(0, OperationStatus::kPending));
  EXPECT_EQ(guest_->Poll(yield), Packed(0, OperationStatus::kPending));
  EXPECT_EQ(guest_->Yield(yield), 1);
  EXPECT_EQ(guest_->Yield(yield), 1) << "already ended: at once";
  EXPECT_EQ(guest_->Poll(yield), Packed(1, OperationStatus::kCompleted));
  EXPECT_EQ(guest_->Poll(yield), kPackedError) << "collected once";
  EXPECT_EQ(guest_->Yield(yield), -1);
  EXPECT_EQ(guest_->Cancel(yield), 0);
}

TEST_F(HubTest, SyntheticResourceLivesFromCreateToClose) {
  const Token create = guest_->Start(Kind::kSyntheticCreate, 0, 3);
  EXPECT_EQ(guest_->Poll(create), 0);
  const Token resource = guest_->Await(create).value_or(0);
  ASSERT_NE(resource, 0u);
  EXPECT_EQ(guest_->Await(guest_->Start(Kind::kSyntheticUse, resource, 2)), 1u);
  EXPECT_EQ(guest_->Start(Kind::kSyntheticUse, resource, 4), 0u) << "a right it lacks";
  EXPECT_EQ(guest_->Start(Kind::kSyntheticUse, resource, 0x102), 0u);
  const Token close = guest_->Start(Kind::kSyntheticClose, resource);
  EXPECT_EQ(guest_->Poll(close), 0);
  EXPECT_EQ(guest_->Await(close), 1u);
  EXPECT_EQ(guest_->Start(Kind::kSyntheticUse, resource, 2), 0u) << "stale";
  EXPECT_EQ(hub_->Snapshot().tombstones, 1u);
}

TEST_F(HubTest, CreateArgumentsAreChecked) {
  EXPECT_EQ(guest_->Start(Kind::kSyntheticCreate, 2, 0), 0u);
  EXPECT_EQ(guest_->Start(Kind::kSyntheticCreate, 0, 256), 0u);
  EXPECT_EQ(guest_->Start(Kind::kBlobCreate, 1, 0), 0u);
  EXPECT_EQ(guest_->Start(Kind::kBlobCreate, 0, 1), 0u);
  EXPECT_EQ(guest_->Start(Kind::kClockSleep, kSleepMsMax + 1, 0), 0u);
  EXPECT_EQ(guest_->Start(Kind::kClockSleep, 1, 1), 0u);
  EXPECT_EQ(hub_->Snapshot().live_operations, 0u);
  EXPECT_EQ(hub_->Snapshot().live_resources, 0u);
}

TEST_F(HubTest, CancelledCloseDoesNotRevoke) {
  const Token resource = guest_->NewSynthetic(false, 1);
  const Token close = guest_->Start(Kind::kSyntheticClose, resource);
  EXPECT_EQ(guest_->Cancel(close), 1);
  EXPECT_EQ(guest_->Yield(close), 1);
  EXPECT_EQ(guest_->Status(close), OperationStatus::kCancelled);
  EXPECT_EQ(guest_->Await(guest_->Start(Kind::kSyntheticUse, resource, 1)), 1u);
}

TEST_F(HubTest, CancelledCreationGivesTheResourceBack) {
  for (const Kind kind : {Kind::kSyntheticCreate, Kind::kBlobCreate}) {
    const Token create = guest_->Start(kind);
    EXPECT_EQ(hub_->Snapshot().live_resources, 1u) << "reserved";
    EXPECT_EQ(guest_->Cancel(create), 1);
    EXPECT_EQ(hub_->Snapshot().live_resources, 0u);
    EXPECT_EQ(hub_->Snapshot().live_blobs, 0u);
    EXPECT_EQ(guest_->Poll(create), Packed(0, OperationStatus::kCancelled));
  }
}

TEST_F(HubTest, FirstEndCounts) {
  const Token yield = guest_->Start(Kind::kSyntheticYield);
  EXPECT_EQ(guest_->Yield(yield), 1);
  EXPECT_EQ(guest_->Cancel(yield), 1) << "it is the caller's";
  EXPECT_EQ(guest_->Status(yield), OperationStatus::kCompleted);
}

// The operation outlives what it is about: closed or, once forgotten, never there.
TEST_F(HubTest, TombstonesDecideTheStatusOfALateUse) {
  const Token resource = guest_->NewSynthetic(true, 1);
  TestGuest child(*hub_, kChild);
  const Token soon = child.Start(Kind::kSyntheticUse, resource, 1);
  const Token late = child.Start(Kind::kSyntheticUse, resource, 1);
  EXPECT_EQ(guest_->Await(guest_->Start(Kind::kSyntheticClose, resource)), 1u);
  EXPECT_EQ(child.Yield(soon), 1);
  EXPECT_EQ(child.Status(soon), OperationStatus::kClosed);
  for (std::uint32_t i = 0; i < kTombstonesMax; ++i) {
    const Token other = guest_->NewSynthetic(false, 0);
    EXPECT_EQ(guest_->Await(guest_->Start(Kind::kSyntheticClose, other)), 1u);
  }
  EXPECT_EQ(child.Yield(late), 1);
  EXPECT_EQ(child.Status(late), OperationStatus::kRejected);
}

TEST_F(OneShot, G15ForeignTokensAreRefused) {
  TestGuest child(*hub_, kChild);
  const Token blob = guest_->NewBlob();
  const Token own = guest_->NewSynthetic(false, 1);
  const Token shared = guest_->NewSynthetic(true, 1);
  const Token read = guest_->Read(blob, 1);
  const Token hash = guest_->Await(guest_->Start(Kind::kHashCreate)).value_or(0);

  EXPECT_EQ(child.Start(Kind::kSyntheticUse, own, 1), 0u);
  EXPECT_EQ(child.Start(Kind::kSyntheticClose, own), 0u);
  EXPECT_EQ(child.Await(child.Start(Kind::kSyntheticUse, shared, 1)), 1u);
  EXPECT_EQ(child.Write(blob, 0, 1), 0u);
  EXPECT_EQ(child.Read(blob, 1), 0u);
  EXPECT_EQ(child.Start(Kind::kBlobSeal, blob), 0u);
  EXPECT_EQ(child.StreamRead(blob, 0, 1), -1);
  EXPECT_EQ(child.StreamWrite(blob, 0, 1), -1);
  EXPECT_EQ(child.Close(blob), 1);
  EXPECT_EQ(child.Submit(Kind::kAbandonBlob, blob), 0);
  EXPECT_EQ(child.Submit(Kind::kAbandonTransfer, read), 0);
  EXPECT_EQ(child.Collect(read, 0, 1), kPackedError);
  EXPECT_EQ(child.Poll(read), kPackedError);
  EXPECT_EQ(child.Yield(read), -1);
  EXPECT_EQ(child.Cancel(read), 0);
  EXPECT_EQ(child.Submit(Kind::kHashUpdate, hash, TestGuest::Range(0, 1)), 0);
  EXPECT_EQ(child.Submit(Kind::kHashFinalise, hash, TestGuest::Range(0, 32)), kPackedError);
  EXPECT_EQ(child.Submit(Kind::kAbandonHash, hash), 0);
}

TEST_F(OneShot, G15ForgedAndStaleTokensAreRefused) {
  const auto other_hub = *Hub::Create({}, clock_);
  TestGuest foreigner(*other_hub);
  const Token foreign = foreigner.NewBlob();
  const Token closed = guest_->NewBlob();
  EXPECT_EQ(guest_->Close(closed), 0);
  for (const Token token : {Token{0}, foreign, closed, Token{1} << 56, ~Token{0}}) {
    EXPECT_EQ(guest_->Write(token, 0, 1), 0u);
    EXPECT_EQ(guest_->Read(token, 1), 0u);
    EXPECT_EQ(guest_->Close(token), 1);
    EXPECT_EQ(guest_->Poll(token), kPackedError);
    EXPECT_EQ(guest_->Yield(token), -1);
    EXPECT_EQ(guest_->Start(Kind::kOutputCommit, token, token), 0u);
  }
}

// A token names one thing of one type.
TEST_F(OneShot, G15TypesAreNotMixedUp) {
  const Token blob = guest_->NewBlob();
  const Token synthetic = guest_->NewSynthetic(false, 1);
  EXPECT_EQ(guest_->Start(Kind::kSyntheticUse, blob, 0), 0u);
  EXPECT_EQ(guest_->Start(Kind::kSyntheticClose, blob), 0u);
  EXPECT_EQ(guest_->Close(synthetic), 1);
  EXPECT_EQ(guest_->Poll(blob), kPackedError) << "not an operation";
  const Token yield = guest_->Start(Kind::kSyntheticYield);
  EXPECT_EQ(guest_->Collect(yield, 0, 8), kPackedError);
  EXPECT_EQ(guest_->Submit(Kind::kAbandonTransfer, yield), 0);
  EXPECT_EQ(guest_->Submit(Kind::kAbandonHashOperation, yield), 0);
}

TEST_F(HubTest, OperationSlotsAreLimited) {
  std::vector<Token> yields;
  for (std::uint32_t i = 0; i < kOperationsMax; ++i) {
    yields.push_back(guest_->Start(Kind::kSyntheticYield));
    ASSERT_NE(yields.back(), 0u);
  }
  for (const Kind kind : {Kind::kSyntheticYield, Kind::kSyntheticCreate, Kind::kBlobCreate,
                          Kind::kClockSleep, Kind::kHashCreate}) {
    EXPECT_EQ(guest_->Start(kind), 0u);
  }
  EXPECT_EQ(guest_->Await(yields.back()), 1u);
  EXPECT_NE(guest_->Start(Kind::kSyntheticYield), 0u) << "collecting gives the slot back";
}

TEST_F(HubTest, ResourcesAreLimited) {
  for (std::uint32_t i = 0; i < kResourcesMax; ++i) {
    ASSERT_NE(guest_->NewSynthetic(false, 0), 0u);
  }
  EXPECT_EQ(guest_->Start(Kind::kSyntheticCreate), 0u);
  EXPECT_EQ(guest_->Start(Kind::kBlobCreate), 0u);
  EXPECT_EQ(guest_->Start(Kind::kHashCreate), 0u);
}

TEST_F(HubTest, HashesWhatItIsGiven) {
  const Token hash = guest_->Await(guest_->Start(Kind::kHashCreate)).value_or(0);
  const Token first = guest_->Start(Kind::kHashUpdate, hash, TestGuest::Range(0, 65'536));
  EXPECT_EQ(guest_->Poll(first), Packed(1, OperationStatus::kCompleted)) << "at the first poll";
  EXPECT_EQ(guest_->Await(guest_->Start(Kind::kHashUpdate, hash, TestGuest::Range(5, 1'000))), 1u);
  Sha256 expected;
  expected.Update(std::span(guest_->bytes()).first(65'536));
  expected.Update(std::span(guest_->bytes()).subspan(5, 1'000));
  const std::array<std::uint8_t, kDigestBytes> digest = expected.Finish();

  constexpr std::uint32_t kEnd = TestGuest::kMemoryBytes;
  for (const std::uint64_t bad :
       {TestGuest::Range(kEnd - 31, 32), TestGuest::Range(0, 31), TestGuest::Range(0, 33)}) {
    EXPECT_EQ(guest_->Submit(Kind::kHashFinalise, hash, bad), kPackedError) << "not consumed";
  }
  EXPECT_EQ(guest_->Submit(Kind::kHashFinalise, hash, TestGuest::Range(kEnd - 32, 32)), 1);
  EXPECT_TRUE(std::equal(digest.begin(), digest.end(), guest_->bytes().end() - 32));
  EXPECT_EQ(guest_->Submit(Kind::kHashFinalise, hash, TestGuest::Range(0, 32)), kPackedError);
}

TEST_F(HubTest, HashUpdatesAreBounded) {
  const Token hash = guest_->Await(guest_->Start(Kind::kHashCreate)).value_or(0);
  EXPECT_EQ(guest_->Start(Kind::kHashUpdate, hash, TestGuest::Range(0, 65'537)), 0u);
  EXPECT_EQ(guest_->Start(Kind::kHashUpdate, hash, TestGuest::Range(TestGuest::kMemoryBytes, 1)),
            0u);
  EXPECT_EQ(guest_->Submit(Kind::kAbandonHash, hash), 1);
  EXPECT_EQ(guest_->Submit(Kind::kAbandonHash, hash), 0);
}

TEST_F(HubTest, AnAbandonedHashOperationTakesItsHashAlong) {
  const Token create = guest_->Start(Kind::kHashCreate);
  EXPECT_EQ(guest_->Submit(Kind::kAbandonHashOperation, create), 1);
  EXPECT_EQ(hub_->Snapshot().live_resources, 0u);
  const Token hash = guest_->Await(guest_->Start(Kind::kHashCreate)).value_or(0);
  const Token update = guest_->Start(Kind::kHashUpdate, hash, TestGuest::Range(0, 8));
  EXPECT_EQ(guest_->Submit(Kind::kAbandonHashOperation, update), 1);
  EXPECT_EQ(guest_->Submit(Kind::kHashFinalise, hash, TestGuest::Range(0, 32)), kPackedError);
  EXPECT_EQ(hub_->Snapshot().live_operations, 0u);
}

TEST_F(HubTest, RevocationEndsEverythingOnceAndKeepsResults) {
  const Token blob = guest_->NewBlob();
  const Token read = guest_->Read(blob, 1);
  const Token create = guest_->Start(Kind::kBlobCreate);
  const Token done = guest_->Start(Kind::kSyntheticYield);
  EXPECT_EQ(guest_->Yield(done), 1);
  hub_->Revoke(OperationStatus::kTimedOut);
  hub_->Revoke(OperationStatus::kCancelled);
  EXPECT_EQ(hub_->Snapshot().live_resources, 0u);
  EXPECT_EQ(guest_->Collect(read, 0, 1), Packed(0, OperationStatus::kTimedOut));
  EXPECT_EQ(guest_->Poll(create), Packed(0, OperationStatus::kTimedOut));
  EXPECT_EQ(guest_->Poll(done), Packed(1, OperationStatus::kCompleted));
  for (const Kind kind : {Kind::kSyntheticYield, Kind::kBlobCreate, Kind::kHashCreate,
                          Kind::kClockSleep, Kind::kOutputGrant}) {
    EXPECT_EQ(guest_->Start(kind), 0u);
  }
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 1), -1);
  EXPECT_EQ(guest_->Close(blob), 1);
  EXPECT_EQ(hub_->Snapshot().live_operations, 0u);
}

TEST_F(HubTest, AnOwnersExitTakesWhatOnlyItCouldUse) {
  TestGuest child(*hub_, kChild);
  const Token blob = child.NewBlob();
  const Token read = child.Read(blob, 1);
  const Token shared = child.NewSynthetic(true, 1);
  ASSERT_NE(child.NewSynthetic(false, 1), 0u);
  const Token create = child.Start(Kind::kSyntheticCreate);
  ASSERT_NE(create, 0u);
  const Token roots = guest_->NewBlob();
  hub_->OwnerExited(kChild);
  EXPECT_EQ(hub_->Snapshot().live_operations, 0u);
  EXPECT_EQ(hub_->Snapshot().live_resources, 2u) << "the shareable one and the root's";
  EXPECT_EQ(hub_->Snapshot().pending_reads, 0u);
  EXPECT_EQ(child.Poll(read), kPackedError);
  EXPECT_EQ(guest_->Await(guest_->Start(Kind::kSyntheticUse, shared, 1)), 1u);
  EXPECT_EQ(guest_->Close(roots), 0);
}

}  // namespace
}  // namespace bulkhead::sketch
