// Waiting, waking, timers and concurrency, with real threads.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sketch/test_guest.h"

namespace bulkhead::sketch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A guest thread that waits for an operation.
class Waiter {
 public:
  Waiter(Hub& hub, TestGuest& guest, Token operation)
      : thread_([this, &guest, operation] { answer_ = guest.Yield(operation); }) {
    // Armed under the lock at the beginning of the wait: from here on only a wake-up ends it.
    EXPECT_TRUE(Eventually([&] { return hub.Snapshot().live_timers > 0; }));
  }

  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  ~Waiter() { Join(); }

  std::int32_t Join() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return answer_;
  }

 private:
  std::int32_t answer_ = 0;
  std::thread thread_;
};

class WaitTest : public HubTest {
 protected:
  void SetUp() override {
    HubTest::SetUp();
    blob_ = guest_->NewBlob();
    read_ = guest_->Read(blob_, 10);
  }

  OperationStatus ReadStatus() { return PollResult(guest_->Collect(read_, 0, 10)).status; }

  Token blob_ = 0;
  Token read_ = 0;
};

TEST_F(WaitTest, ACompletionWakes) {
  Waiter waiter(*hub_, *guest_, read_);
  EXPECT_EQ(guest_->StreamWrite(blob_, 0, 1), 1);
  EXPECT_EQ(waiter.Join(), 1);
  EXPECT_EQ(ReadStatus(), OperationStatus::kCompleted);
}

TEST_F(WaitTest, ACancellationWakes) {
  Waiter waiter(*hub_, *guest_, read_);
  EXPECT_EQ(guest_->Cancel(read_), 1);
  EXPECT_EQ(waiter.Join(), 1);
  EXPECT_EQ(ReadStatus(), OperationStatus::kCancelled);
}

TEST_F(WaitTest, ClosingTheBlobWakes) {
  Waiter waiter(*hub_, *guest_, read_);
  EXPECT_EQ(guest_->Close(blob_), 0);
  EXPECT_EQ(waiter.Join(), 1);
  EXPECT_EQ(ReadStatus(), OperationStatus::kClosed);
}

TEST_F(WaitTest, TheOwnersExitWakes) {
  Waiter waiter(*hub_, *guest_, read_);
  hub_->OwnerExited(kRootOwner);
  EXPECT_EQ(waiter.Join(), 1);
  EXPECT_EQ(guest_->Poll(read_), kPackedError) << "nobody is left to collect it";
}

TEST_F(OneShot, G19RevocationWakesEveryParkedThread) {
  constexpr Owner kThreads = 8;
  std::vector<std::unique_ptr<TestGuest>> guests;
  std::vector<Token> reads;
  for (Owner owner = 1; owner <= kThreads; ++owner) {
    guests.push_back(std::make_unique<TestGuest>(*hub_, owner));
    const Token blob = guests.back()->NewBlob();
    reads.push_back(guests.back()->Read(blob, 1));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < guests.size(); ++i) {
    threads.emplace_back([&, i] { EXPECT_EQ(guests[i]->Yield(reads[i]), 1); });
  }
  ASSERT_TRUE(Eventually([&] { return hub_->Snapshot().live_timers == kThreads; }));
  hub_->Revoke(OperationStatus::kCancelled);
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t i = 0; i < guests.size(); ++i) {
    EXPECT_EQ(guests[i]->Collect(reads[i], 0, 1), Packed(0, OperationStatus::kCancelled));
  }
}

TEST_F(WaitTest, G16IdleTimeout) {
  Waiter waiter(*hub_, *guest_, read_);
  clock_.Advance(seconds(5));
  hub_->ClockChanged();
  EXPECT_EQ(waiter.Join(), 1);
  EXPECT_EQ(ReadStatus(), OperationStatus::kTimedOut);
}

TEST_F(HubTest, SleepsEndInTheOrderOfTheirTimes) {
  const Token later = guest_->Start(Kind::kClockSleep, 20);
  const Token sooner = guest_->Start(Kind::kClockSleep, 10);
  EXPECT_EQ(hub_->Snapshot().live_timers, 2u);
  clock_.Advance(milliseconds(10));
  hub_->ClockChanged();
  EXPECT_EQ(guest_->Await(sooner), 1u);
  EXPECT_EQ(guest_->Poll(later), 0);
  clock_.Advance(milliseconds(10));
  hub_->ClockChanged();
  EXPECT_EQ(guest_->Await(later), 1u);
  EXPECT_EQ(hub_->Snapshot().live_timers, 0u);
}

TEST_F(HubTest, ACancelledSleepHoldsNoTimer) {
  const Token sleep = guest_->Start(Kind::kClockSleep, kSleepMsMax);
  EXPECT_EQ(guest_->Cancel(sleep), 1);
  EXPECT_EQ(hub_->Snapshot().live_timers, 0u);
  EXPECT_EQ(guest_->Status(sleep), OperationStatus::kCancelled);
}

TEST(HubClock, ARealSleepTakesItsTime) {
  const MonotonicClock clock;
  const auto hub = *Hub::Create({}, clock);
  TestGuest guest(*hub);
  const MonotonicTime begin = clock.Now();
  EXPECT_EQ(guest.Await(guest.Start(Kind::kClockSleep, 10)), 1u);
  EXPECT_GE(clock.Now() - begin, milliseconds(10));
}

TEST(HubClock, ARealIdleTimeoutComes) {
  const MonotonicClock clock;
  const auto hub = *Hub::Create({.limits = {.idle_timeout = milliseconds(5)}}, clock);
  TestGuest guest(*hub);
  const Token read = guest.Read(guest.NewBlob(), 1);
  EXPECT_EQ(guest.Yield(read), 1);
  EXPECT_EQ(guest.Collect(read, 0, 1), Packed(0, OperationStatus::kTimedOut));
}

TEST_F(HubTest, FinishMayBeCalledTwice) {
  EXPECT_NE(guest_->Start(Kind::kClockSleep, 1000), 0u);
  hub_->Finish();
  hub_->Finish();
  EXPECT_EQ(guest_->Start(Kind::kClockSleep, 1), 0u);
  hub_->OwnerExited(kRootOwner);
}

// ---- the real guest's sequence ----

constexpr std::uint32_t kChunk = 64 * 1024;
constexpr std::uint32_t kSlots = 16;  // chunks of a full blob

// Fills a blob, blocks one write and one read, cancels both, and lets a read free a write.
void FillBlockCancelRead(TestGuest& guest) {
  const Token blob = guest.NewBlob();
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    ASSERT_EQ(guest.Await(guest.Write(blob, 0, kChunk)), 1u);
  }
  const Token blocked = guest.Write(blob, 0, kChunk);
  const Token turn = guest.Start(Kind::kSyntheticYield);
  ASSERT_EQ(guest.Await(turn), 1u);
  ASSERT_EQ(guest.Poll(blocked), Packed(0, OperationStatus::kPending));
  ASSERT_EQ(guest.Cancel(blocked), 1);
  ASSERT_EQ(guest.Status(blocked), OperationStatus::kCancelled);
  const Token again = guest.Write(blob, 0, kChunk);
  ASSERT_EQ(guest.Poll(again), 0);
  const Token read = guest.Read(blob, kChunk);
  ASSERT_EQ(guest.Await(again), 1u);
  ASSERT_EQ(guest.Collect(read, 2 * kChunk, kChunk), Packed(kChunk, OperationStatus::kCompleted));
  ASSERT_TRUE(guest.Seal(blob));
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    ASSERT_EQ(guest.Collect(guest.Read(blob, kChunk), 2 * kChunk, kChunk),
              Packed(kChunk, OperationStatus::kCompleted));
  }
  ASSERT_EQ(guest.Collect(guest.Read(blob, kChunk), 2 * kChunk, kChunk),
            Packed(0, OperationStatus::kCompleted));
  ASSERT_EQ(guest.Close(blob), 0);
}

TEST(HubGuest, RealGuestSequence) {
  const MonotonicClock clock;
  UniqueFd file(memfd_create("output", MFD_CLOEXEC));
  const UniqueFd look(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  const auto hub = *Hub::Create({.output = OutputGrant{std::move(file), 1024}}, clock);
  TestGuest root(*hub);

  ASSERT_EQ(root.Await(root.Start(Kind::kClockSleep, 10)), 1u);
  const Token blob = root.NewBlob();
  for (int i = 0; i < 128; ++i) {
    const Token read = root.Read(blob, 1);
    ASSERT_NE(read, 0u);
    ASSERT_EQ(root.Submit(Kind::kAbandonTransfer, read), 1);
  }
  EXPECT_EQ(root.Read(blob, 0), 0u);
  EXPECT_EQ(root.Read(blob, 65'537), 0u);
  const Token empty = root.Read(blob, 1);
  EXPECT_EQ(root.Cancel(empty), 1);
  EXPECT_EQ(root.Collect(empty, 0, 1), Packed(0, OperationStatus::kCancelled));
  EXPECT_EQ(root.Close(blob), 0);
  FillBlockCancelRead(root);
  for (int i = 0; i < 128; ++i) {
    ASSERT_EQ(root.Close(root.NewBlob()), 0);
  }

  const Token output = root.Start(Kind::kOutputGrant);
  constexpr std::string_view kContent = "guest exact output";
  std::ranges::copy(kContent, root.bytes().begin());
  const Token result = root.NewBlob();
  ASSERT_EQ(root.Await(root.Write(result, 0, kContent.size())), 1u);
  const Token early = root.Start(Kind::kOutputCommit, result, output);
  ASSERT_EQ(root.Yield(early), 1);
  ASSERT_EQ(root.Status(early), OperationStatus::kRejected);
  ASSERT_TRUE(root.Seal(result));
  ASSERT_EQ(root.Await(root.Start(Kind::kOutputCommit, result, output)), 1u);

  const Token shared = root.NewSynthetic(true, 1);
  std::vector<std::thread> threads;
  for (Owner owner = 1; owner <= 2; ++owner) {
    threads.emplace_back([&hub, shared, owner] {
      TestGuest child(*hub, owner);
      EXPECT_EQ(child.Await(child.Start(Kind::kSyntheticUse, shared, 1)), 1u);
      FillBlockCancelRead(child);
      hub->OwnerExited(owner);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::string content(100, '\0');
  content.resize(static_cast<std::size_t>(pread(look.get(), content.data(), content.size(), 0)));
  EXPECT_EQ(content, kContent);
  EXPECT_EQ(hub->Snapshot().live_operations, 0u);
}

// ---- stress ----

// One guest thread's share: bytes through a blob in uneven pieces, with waits and cancellations.
void StreamSomeBytes(Hub& hub, Owner owner) {
  TestGuest guest(hub, owner);
  std::uint64_t state = owner;
  const auto random = [&state](std::uint32_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>((state >> 33) % below);
  };
  for (int round = 0; round < 20; ++round) {
    const Token blob = guest.NewBlob();
    if (blob == 0) {
      continue;  // refused: others hold the slots
    }
    for (int i = 0; i < 30; ++i) {
      const Token write = guest.Write(blob, random(1000), random(4000));
      if (write != 0 && random(4) == 0) {
        guest.Cancel(write);
      }
      const Token read = guest.Read(blob, 1 + random(4000));
      guest.StreamRead(blob, 10'000, static_cast<std::int32_t>(random(500)));
      if (read != 0) {
        guest.Cancel(read);
        guest.Yield(read);
        guest.Collect(read, 10'000, 4000);
      }
      guest.StreamWrite(blob, 0, static_cast<std::int32_t>(random(500)));
      if (write != 0) {
        guest.Submit(Kind::kAbandonTransfer, write);
      }
    }
    const Token sleep = guest.Start(Kind::kClockSleep, 0);
    if (sleep != 0) {
      guest.Await(sleep);
    }
    if (random(2) == 0) {
      guest.Close(blob);
    }
  }
  hub.OwnerExited(owner);
}

TEST(HubStress, EightThreadsLeaveNothingBehind) {
  const MonotonicClock clock;
  const auto hub = *Hub::Create({.limits = {.chunk_bytes = 4096,
                                            .blob_bytes = 8192,
                                            .blobs_bytes = 16'384,
                                            .blobs = 6,
                                            .pending_reads = 4,
                                            .pending_writes = 4,
                                            .retained_bytes = 40'000}},
                                clock);
  std::vector<std::thread> threads;
  for (Owner owner = 1; owner <= 8; ++owner) {
    threads.emplace_back([&hub, owner] { StreamSomeBytes(*hub, owner); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const HubSnapshot end = hub->Snapshot();
  EXPECT_EQ(end.live_operations, 0u);
  EXPECT_EQ(end.live_resources, 0u);
  EXPECT_EQ(end.pending_reads, 0u);
  EXPECT_EQ(end.pending_writes, 0u);
  EXPECT_EQ(end.retained_bytes, 0u);
  EXPECT_LE(end.retained_bytes_peak, 40'000u);
}

// Revocation in the middle of everything: whoever waits comes back.
TEST(HubStress, RevocationUnderLoad) {
  const MonotonicClock clock;
  for (int round = 0; round < 20; ++round) {
    const auto hub = *Hub::Create({}, clock);
    std::vector<std::thread> threads;
    for (Owner owner = 1; owner <= 4; ++owner) {
      threads.emplace_back([&hub, owner] { StreamSomeBytes(*hub, owner); });
    }
    ASSERT_TRUE(Eventually(
        [&] { return hub->Snapshot().live_blobs > 0 || hub->Snapshot().tombstones > 0; }));
    hub->Revoke(OperationStatus::kTimedOut);
    for (std::thread& thread : threads) {
      thread.join();
    }
    hub->Finish();
    EXPECT_EQ(hub->Snapshot().retained_bytes, 0u);
    EXPECT_EQ(hub->Snapshot().live_operations, 0u);
  }
}

}  // namespace
}  // namespace bulkhead::sketch
