// What only shows when the service threads have not acted yet.

#include "sketch/hub_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace bulkhead::sketch {
namespace {

class HubStateTest : public testing::Test {
 protected:
  std::int64_t Submit(Kind kind, std::uint64_t a0 = 0, std::uint64_t a1 = 0) {
    return state_.Submit({kRootOwner, kind, a0, a1, {bytes_.data(), bytes_.size()}, now_});
  }

  Token NewSealedBlob() {
    const auto create = static_cast<Token>(Submit(Kind::kBlobCreate));
    state_.Suspend(kRootOwner, create, now_);
    const auto blob = static_cast<Token>(state_.Poll(kRootOwner, create) >> 8);
    EXPECT_EQ(Submit(Kind::kBlobWrite, blob, std::uint64_t{10} << 32) != 0, true);
    EXPECT_NE(Submit(Kind::kBlobSeal, blob), 0);
    return blob;
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(100);
  MonotonicTime now_;
  HubState state_ = HubState({}, true);
};

TEST_F(HubStateTest, CancellingAQueuedCommitConsumesNothing) {
  const Token blob = NewSealedBlob();
  const auto output = static_cast<Token>(Submit(Kind::kOutputGrant));
  const auto commit = static_cast<Token>(Submit(Kind::kOutputCommit, blob, output));
  EXPECT_TRUE(state_.commit_queued());
  EXPECT_TRUE(state_.Cancel(kRootOwner, commit, now_));
  EXPECT_FALSE(state_.commit_queued());
  EXPECT_FALSE(state_.StartCommit());
  EXPECT_EQ(state_.Snapshot().retained_bytes, 10u);
  ASSERT_NE(Submit(Kind::kOutputCommit, blob, output), 0);
  EXPECT_TRUE(state_.StartCommit()) << "handles stayed usable";
}

TEST_F(HubStateTest, ACommitWithoutAThreadIsRejected) {
  const Token blob = NewSealedBlob();
  const auto output = static_cast<Token>(Submit(Kind::kOutputGrant));
  const auto commit = static_cast<Token>(Submit(Kind::kOutputCommit, blob, output));
  state_.RejectCommit(now_);
  EXPECT_EQ(state_.Poll(kRootOwner, commit), Packed(0, OperationStatus::kRejected));
  EXPECT_EQ(state_.Snapshot().commit_jobs, 0u);
}

TEST_F(HubStateTest, ClosingTheBlobOfAQueuedCommitEndsIt) {
  const Token blob = NewSealedBlob();
  const auto output = static_cast<Token>(Submit(Kind::kOutputGrant));
  const auto commit = static_cast<Token>(Submit(Kind::kOutputCommit, blob, output));
  EXPECT_TRUE(state_.CloseBlob(kRootOwner, blob, now_));
  EXPECT_FALSE(state_.StartCommit());
  EXPECT_EQ(state_.Poll(kRootOwner, commit), Packed(0, OperationStatus::kClosed));
}

// No read, because a read under way would lose bytes to the commit or the commit to it.
TEST_F(HubStateTest, AWaitingReadForbidsACommit) {
  const auto create = static_cast<Token>(Submit(Kind::kBlobCreate));
  state_.Suspend(kRootOwner, create, now_);
  const auto blob = static_cast<Token>(state_.Poll(kRootOwner, create) >> 8);
  ASSERT_NE(Submit(Kind::kBlobRead, blob, 1), 0);
  const auto output = static_cast<Token>(Submit(Kind::kOutputGrant));
  const auto commit = static_cast<Token>(Submit(Kind::kOutputCommit, blob, output));
  EXPECT_EQ(state_.Poll(kRootOwner, commit), Packed(0, OperationStatus::kRejected));
}

// The timeout starts with the wait, and only bytes through the same blob postpone it.
TEST_F(HubStateTest, IdleTimeoutCountsFromTheWaitAndTheBlobsLastMove) {
  const auto blob = [this] {
    const auto create = static_cast<Token>(Submit(Kind::kBlobCreate));
    state_.Suspend(kRootOwner, create, now_);
    return static_cast<Token>(state_.Poll(kRootOwner, create) >> 8);
  };
  const Token first = blob();
  const Token second = blob();
  const auto read = static_cast<Token>(Submit(Kind::kBlobRead, first, 1));
  const auto next = static_cast<Token>(Submit(Kind::kBlobRead, first, 1));
  EXPECT_EQ(state_.NextEnd(), std::nullopt) << "nobody waits for it";
  now_ += std::chrono::seconds(100);
  state_.Suspend(kRootOwner, next, now_);
  EXPECT_EQ(state_.NextEnd(), now_ + std::chrono::seconds(5));

  now_ += std::chrono::seconds(4);
  state_.Suspend(kRootOwner, next, now_);
  EXPECT_EQ(state_.NextEnd(), now_ + std::chrono::seconds(1)) << "armed once";
  ASSERT_NE(Submit(Kind::kBlobWrite, second, std::uint64_t{1} << 32), 0);
  EXPECT_EQ(state_.NextEnd(), now_ + std::chrono::seconds(1)) << "another blob's bytes";
  ASSERT_NE(Submit(Kind::kBlobWrite, first, std::uint64_t{1} << 32), 0);
  EXPECT_FALSE(state_.Suspend(kRootOwner, read, now_)->pending()) << "the first read got them";
  EXPECT_EQ(state_.NextEnd(), now_ + std::chrono::seconds(5));

  now_ += std::chrono::seconds(5) - std::chrono::nanoseconds(1);
  state_.Expire(now_);
  EXPECT_TRUE(state_.Suspend(kRootOwner, next, now_)->pending());
  now_ += std::chrono::nanoseconds(1);
  state_.Expire(now_);
  EXPECT_EQ(Submit(Kind::kCollectRead, next), Packed(0, OperationStatus::kTimedOut));
  EXPECT_EQ(state_.NextEnd(), std::nullopt);
}

TEST_F(HubStateTest, AnIdleTimeoutBeyondTheClockNeverComes) {
  HubState patient({.idle_timeout = std::chrono::nanoseconds::max()}, false);
  const wasi::GuestMemory memory{bytes_.data(), bytes_.size()};
  const auto create =
      static_cast<Token>(patient.Submit({kRootOwner, Kind::kBlobCreate, 0, 0, memory, now_}));
  patient.Suspend(kRootOwner, create, now_);
  const auto blob = static_cast<Token>(patient.Poll(kRootOwner, create) >> 8);
  now_ = MonotonicTime(std::chrono::hours(1));
  const auto read =
      static_cast<Token>(patient.Submit({kRootOwner, Kind::kBlobRead, blob, 1, memory, now_}));
  patient.Suspend(kRootOwner, read, now_);
  EXPECT_EQ(patient.NextEnd(), MonotonicTime::max());
}

}  // namespace
}  // namespace bulkhead::sketch
