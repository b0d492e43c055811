// The system gives the hub no thread for what needs one: sleeps, idle timeouts, commits.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "sketch/test_guest.h"
#include "support/refused_calls.h"

namespace bulkhead::sketch {
namespace {

class StarvedTest : public HubTest {
 protected:
  void SetUp() override {
    OpenSmall();
    if (!test::WithoutNewThreads([] {})) {
      GTEST_SKIP() << "missing: seccomp";
    }
  }

  // Within `body` no thread can be started, afterwards again.
  static void Starved(const std::function<void()>& body) {
    EXPECT_TRUE(test::WithoutNewThreads(body));
  }
};

TEST_F(StarvedTest, ASleepIsRefusedAndLeavesNothing) {
  Starved([&] { EXPECT_EQ(guest_->Start(Kind::kClockSleep, 1), 0u); });
  EXPECT_EQ(hub_->Snapshot().live_operations, 0u);
  EXPECT_EQ(hub_->Snapshot().live_timers, 0u);
  EXPECT_EQ(guest_->Await(guest_->Start(Kind::kClockSleep, 0)), 1u) << "the next one tries again";
}

TEST_F(StarvedTest, AReadThatWouldWaitIsRejected) {
  const Token blob = guest_->NewBlob();
  Starved([&] {
    const Token read = guest_->Read(blob, 1);
    ASSERT_NE(read, 0u);
    EXPECT_EQ(guest_->Yield(read), 1);
    EXPECT_EQ(guest_->Collect(read, kTarget, 1), Packed(0, OperationStatus::kRejected));
  });
  EXPECT_EQ(hub_->Snapshot().pending_reads, 0u);
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 1), 1) << "the blob is as it was";
}

TEST_F(StarvedTest, AWriteThatWouldWaitIsRejectedWithItsBytes) {
  const Token blob = FullBlob();
  Starved([&] {
    const Token write = guest_->Write(blob, 0, 1);
    ASSERT_NE(write, 0u);
    EXPECT_EQ(guest_->Yield(write), 1);
    EXPECT_EQ(guest_->Status(write), OperationStatus::kRejected);
  });
  EXPECT_EQ(hub_->Snapshot().pending_writes, 0u);
  EXPECT_EQ(hub_->Snapshot().retained_bytes, kBlob);
}

TEST_F(StarvedTest, WhatNeedsNoThreadGoesOn) {
  Starved([&] {
    const Token blob = guest_->NewBlob();
    EXPECT_EQ(guest_->Await(guest_->Write(blob, 0, kChunk)), 1u);
    const Token read = guest_->Read(blob, kChunk);
    EXPECT_EQ(guest_->Yield(read), 1) << "it has its bytes and does not wait";
    EXPECT_EQ(Collected(read), Written(0, kChunk));
  });
}

TEST_F(StarvedTest, AThreadThatRunsServesOn) {
  EXPECT_EQ(guest_->Await(guest_->Start(Kind::kClockSleep, 0)), 1u);
  Starved([&] { EXPECT_EQ(guest_->Await(guest_->Start(Kind::kClockSleep, 0)), 1u); });
}

TEST_F(StarvedTest, ACommitIsRejectedAndItsHandlesStayUsable) {
  OpenWithOutput({});
  const Token output = GetOutput();
  const Token blob = guest_->SealedBlob("in the end");
  Starved([&] {
    const Token commit = guest_->Start(Kind::kOutputCommit, blob, output);
    ASSERT_NE(commit, 0u);
    EXPECT_EQ(guest_->Status(commit), OperationStatus::kRejected) << "at once";
  });
  EXPECT_EQ(hub_->Snapshot().commit_jobs, 0u);
  EXPECT_EQ(OutputContent(), kOldOutput) << "untouched";
  EXPECT_FALSE(hub_->output_facts().created);

  EXPECT_EQ(Commit(blob, output), OperationStatus::kCompleted);
  EXPECT_EQ(OutputContent(), "in the end");
}

}  // namespace
}  // namespace bulkhead::sketch
