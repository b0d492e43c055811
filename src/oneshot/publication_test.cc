// Decision table C, row by row.
#include "oneshot/publication.h"

#include <gtest/gtest.h>

namespace bulkhead::oneshot {
namespace {

Outcome Completed() {
  Outcome outcome;
  outcome.code = OutcomeCode::kWorkerCompleted;
  outcome.completed_as = CompletedAs::kStarted;
  return outcome;
}

Outcome Trapped() {
  Outcome outcome;
  outcome.code = OutcomeCode::kTrapped;
  return outcome;
}

staging::CommitResult Published() {
  staging::CommitResult commit;
  commit.published = true;
  return commit;
}

staging::CommitResult Stopped() {
  staging::CommitResult commit;
  commit.stopped = true;
  return commit;
}

staging::CommitResult FailedAt(staging::CommitStep step) {
  staging::CommitResult commit;
  commit.failed_at = step;
  return commit;
}

TEST(TableC, PublishedStaysCompleted) {
  const Publication publication = AfterCommit(Completed(), Published(), StopCause::kNone);
  EXPECT_TRUE(publication.outcome.completed());
  EXPECT_EQ(publication.outcome.completed_as, CompletedAs::kStarted);
  EXPECT_TRUE(publication.masked_code.empty());
}

TEST(OneShot, U1CleanupFailureTellsPublication) {
  staging::CommitResult commit = Published();
  commit.removal_failed = true;
  EXPECT_EQ(AfterCommit(Completed(), commit, StopCause::kNone).outcome.code,
            OutcomeCode::kWorkerOutputCommittedCleanup);
  const Publication discarded = AfterDiscard(Trapped(), false);
  EXPECT_EQ(discarded.outcome.code, OutcomeCode::kWorkerOutputCleanup);
  EXPECT_EQ(discarded.masked_code, "trapped");
}

TEST(OneShot, U2StopAtPublicationNamesItsCause) {
  EXPECT_EQ(AfterCommit(Completed(), Stopped(), StopCause::kCancelled).outcome.code,
            OutcomeCode::kCancelled);
  EXPECT_EQ(AfterCommit(Completed(), Stopped(), StopCause::kDeadlineExceeded).outcome.code,
            OutcomeCode::kDeadlineExceeded);
}

TEST(OneShot, U4StoppedWithFailedRemovalIsOutputCleanup) {
  staging::CommitResult commit = Stopped();
  commit.removal_failed = true;
  EXPECT_EQ(AfterCommit(Completed(), commit, StopCause::kCancelled).outcome.code,
            OutcomeCode::kWorkerOutputCleanup);
}

TEST(TableC, FailedStepsAreOutputCommit) {
  using Step = staging::CommitStep;
  for (const Step step : {Step::kCheckFile, Step::kCheckDestination, Step::kSetMode,
                          Step::kSyncFile, Step::kDigest, Step::kReplace}) {
    const Publication publication = AfterCommit(Completed(), FailedAt(step), StopCause::kNone);
    EXPECT_EQ(publication.outcome.code, OutcomeCode::kWorkerOutputCommit);
    EXPECT_EQ(publication.masked_code, "worker-completed");
  }
}

TEST(TableC, TooLargeAnOutputIsItsOwnLimit) {
  EXPECT_EQ(AfterCommit(Completed(), FailedAt(staging::CommitStep::kCheckSize), StopCause::kNone)
                .outcome.code,
            OutcomeCode::kOutputLimit);
}

TEST(TableC, AnyOtherOutcomeIsUntouchedByACleanDiscard) {
  const Publication publication = AfterDiscard(Trapped(), true);
  EXPECT_EQ(publication.outcome.code, OutcomeCode::kTrapped);
  EXPECT_TRUE(publication.masked_code.empty());
}

}  // namespace
}  // namespace bulkhead::oneshot
