// The output: grant, preconditions, the job and its failures.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <future>
#include <string>

#include "sketch/test_guest.h"

namespace bulkhead::sketch {
namespace {

constexpr std::string_view kContent = "guest exact output";

class CommitTest : public HubTest {
 protected:
  void SetUp() override { OpenWithOutput({}); }
};

TEST_F(CommitTest, WritesTheBlobAndNothingElse) {
  const Token output = GetOutput();
  ASSERT_NE(output, 0u);
  EXPECT_EQ(GetOutput(), output) << "repeatable";
  const Token blob = guest_->SealedBlob(kContent);
  EXPECT_EQ(Commit(blob, output), OperationStatus::kCompleted);
  EXPECT_EQ(OutputContent(), kContent);
  EXPECT_TRUE(hub_->output_facts().created);
  EXPECT_EQ(hub_->Snapshot().committed_outputs, 1u);
  EXPECT_EQ(guest_->Close(blob), 1) << "blob and output are gone";
  EXPECT_EQ(GetOutput(), 0u);
  EXPECT_EQ(guest_->Start(Kind::kOutputCommit, guest_->SealedBlob(kContent), output), 0u);
}

TEST_F(CommitTest, AnEmptyOutputIsAnOutput) {
  EXPECT_EQ(Commit(guest_->SealedBlob(""), GetOutput()), OperationStatus::kCompleted);
  EXPECT_EQ(OutputContent(), "");
  EXPECT_TRUE(hub_->output_facts().created);
}

TEST_F(CommitTest, OnlyTheRootIsGranted) {
  TestGuest child(*hub_, 1);
  EXPECT_EQ(child.Start(Kind::kOutputGrant), 0u);
  const Token output = GetOutput();
  EXPECT_EQ(child.Start(Kind::kOutputCommit, child.SealedBlob(kContent), output), 0u);
  EXPECT_EQ(guest_->Start(Kind::kOutputGrant, 1), 0u);
}

TEST_F(CommitTest, UnmetPreconditionsAreRejectedAndKeepTheHandles) {
  const Token output = GetOutput();
  const Token blob = guest_->NewBlob();
  EXPECT_EQ(guest_->StreamWrite(blob, 0, 10), 10);
  EXPECT_EQ(Commit(blob, output), OperationStatus::kRejected) << "not sealed";
  TestGuest child(*hub_, 1);
  EXPECT_EQ(Commit(child.SealedBlob("x"), output), OperationStatus::kRejected) << "not its own";
  EXPECT_EQ(Commit(output, output), OperationStatus::kRejected) << "not a blob";
  EXPECT_EQ(OutputContent(), kOldOutput) << "untouched";
  EXPECT_EQ(guest_->StreamRead(blob, 100, 10), 10);
  EXPECT_TRUE(guest_->Seal(blob));
  EXPECT_EQ(Commit(blob, output), OperationStatus::kCompleted);
}

TEST_F(CommitTest, AboveTheLimitIsRejectedAndSaid) {
  OpenWithOutput({}, kContent.size() - 1);
  EXPECT_EQ(Commit(guest_->SealedBlob(kContent), GetOutput()), OperationStatus::kRejected);
  EXPECT_TRUE(hub_->output_facts().limit_hit);
  EXPECT_FALSE(hub_->output_facts().created);
  EXPECT_EQ(OutputContent(), "");
  OpenWithOutput({}, kContent.size());
  EXPECT_EQ(Commit(guest_->SealedBlob(kContent), GetOutput()), OperationStatus::kCompleted);
  EXPECT_FALSE(hub_->output_facts().limit_hit);
}

// Each hook fails the first job only.
std::function<int()> FailOnce() {
  return [left = 1]() mutable { return left-- > 0 ? EIO : 0; };
}

TEST_F(OneShot, G17FaultAtWrite) {
  OpenWithOutput({.before_write = FailOnce()});
  ExpectFailsThenSucceeds();
}

TEST_F(OneShot, G17FaultAtFsync) {
  OpenWithOutput({.before_fsync = FailOnce()});
  ExpectFailsThenSucceeds();
}

TEST_F(OneShot, G17FaultAtCompletion) {
  OpenWithOutput({.before_complete = FailOnce()});
  ExpectFailsThenSucceeds();
}

TEST_F(OneShot, G17AFileThatCannotBeEmptiedIsReported) {
  OpenWithOutput({});
  ASSERT_EQ(fcntl(output_.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(Commit(guest_->SealedBlob(kContent), GetOutput()), OperationStatus::kRejected);
  EXPECT_TRUE(hub_->output_facts().cleanup_failed);
  EXPECT_EQ(hub_->Snapshot().retained_bytes, 0u);
}

// A job that waits at a hook until the test lets it go on.
struct Pause {
  std::promise<void> reached;
  std::promise<void> go;

  std::function<int()> Hook() {
    return [this, first = true]() mutable {
      if (std::exchange(first, false)) {
        reached.set_value();
        go.get_future().wait();
      }
      return 0;
    };
  }
};

TEST_F(CommitTest, WhileItRunsTheBlobAndTheOutputAreTaken) {
  Pause pause;
  OpenWithOutput({.before_write = pause.Hook()});
  const Token output = GetOutput();
  const Token blob = guest_->SealedBlob(kContent);
  const Token commit = guest_->Start(Kind::kOutputCommit, blob, output);
  pause.reached.get_future().wait();
  EXPECT_EQ(hub_->Snapshot().commit_jobs, 1u);
  EXPECT_EQ(hub_->Snapshot().retained_bytes, kContent.size()) << "charged while under way";
  EXPECT_EQ(guest_->Read(blob, 1), 0u);
  EXPECT_EQ(guest_->StreamRead(blob, 0, 1), -1);
  EXPECT_EQ(Commit(blob, output), OperationStatus::kRejected) << "already committing";
  EXPECT_EQ(guest_->Poll(commit), 0);
  pause.go.set_value();
  EXPECT_EQ(guest_->Await(commit), 1u);
}

// What the job writes occupies no blob any more.
TEST_F(CommitTest, WhileItRunsOtherBlobsHaveTheRoom) {
  Pause pause;
  UniqueFd file(memfd_create("output", MFD_CLOEXEC));
  HubLimits limits = Small();
  limits.blob_bytes = limits.blobs_bytes;
  Open({.limits = limits,
        .output = OutputGrant{std::move(file), 1000},
        .hooks = {.before_write = pause.Hook()}});
  const Token full = guest_->NewBlob();
  for (std::uint64_t at = 0; at < limits.blobs_bytes; at += kChunk) {
    ASSERT_EQ(guest_->StreamWrite(full, 0, kChunk), static_cast<std::int32_t>(kChunk));
  }
  ASSERT_TRUE(guest_->Seal(full));
  const Token other = guest_->NewBlob();
  const Token waiting = guest_->Write(other, 0, kChunk);
  EXPECT_EQ(guest_->Poll(waiting), 0);
  const Token commit = guest_->Start(Kind::kOutputCommit, full, GetOutput());
  EXPECT_EQ(guest_->Await(waiting), 1u);
  pause.go.set_value();
  EXPECT_EQ(guest_->Await(commit), 1u);
}

enum class Loss : std::uint8_t { kCancel, kClose, kRevoke, kOwnerExit };

class CommitLosesAuthority : public CommitTest, public testing::WithParamInterface<Loss> {
 protected:
  void Lose(Token commit, Token blob) {
    switch (GetParam()) {
      case Loss::kCancel:
        EXPECT_EQ(guest_->Cancel(commit), 1);
        return;
      case Loss::kClose:
        EXPECT_EQ(guest_->Close(blob), 0);
        return;
      case Loss::kRevoke:
        hub_->Revoke(OperationStatus::kCancelled);
        return;
      case Loss::kOwnerExit:
        hub_->OwnerExited(kRootOwner);
        return;
    }
  }

  void ExpectNothingComesOfIt(Pause& pause) {
    GetOutput();
    const Token blob = guest_->SealedBlob(kContent);
    const Token commit = guest_->Start(Kind::kOutputCommit, blob, GetOutput());
    pause.reached.get_future().wait();
    Lose(commit, blob);
    EXPECT_NE(PollResult(guest_->Poll(commit)).status, OperationStatus::kCompleted);
    pause.go.set_value();
    hub_->Finish();
    EXPECT_EQ(OutputContent(), "");
    EXPECT_FALSE(hub_->output_facts().created);
    EXPECT_FALSE(hub_->output_facts().cleanup_failed);
  }
};

TEST_P(CommitLosesAuthority, BeforeAPiece) {
  Pause pause;
  OpenWithOutput({.before_write = pause.Hook()});
  ExpectNothingComesOfIt(pause);
}

TEST_P(CommitLosesAuthority, BeforeCompletion) {
  Pause pause;
  OpenWithOutput({.before_complete = pause.Hook()});
  ExpectNothingComesOfIt(pause);
}

INSTANTIATE_TEST_SUITE_P(EveryWay, CommitLosesAuthority,
                         testing::Values(Loss::kCancel, Loss::kClose, Loss::kRevoke,
                                         Loss::kOwnerExit));

}  // namespace
}  // namespace bulkhead::sketch
