#include "cli/exit_status.h"

#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <vector>

namespace bulkhead::cli {
namespace {

struct Row {
  OutcomeCode code;
  int status;
};

// Without a guest code, reason or signal.
const std::vector<Row>& Rows() {
  static const std::vector<Row> kRows{
      {OutcomeCode::kWorkerCompleted, 0},
      {OutcomeCode::kCancelled, 130},
      {OutcomeCode::kDeadlineExceeded, 124},
      {OutcomeCode::kForcedContainmentCancelled, 130},
      {OutcomeCode::kForcedContainmentDeadlineExceeded, 124},
      {OutcomeCode::kThreadedProfileRequired, 126},
      {OutcomeCode::kSharedMemoryLimitExceeded, 121},
      {OutcomeCode::kRootExecutionLimitExceeded, 121},
      {OutcomeCode::kSessionBusy, 125},
      {OutcomeCode::kOutOfFuel, 120},
      {OutcomeCode::kEpochRegistrationLimitExceeded, 121},
      {OutcomeCode::kForeignRuntime, 125},
      {OutcomeCode::kBlockingTaskFailed, 125},
      {OutcomeCode::kContainmentRequired, 125},
      {OutcomeCode::kSharedMemoryUnavailable, 125},
      {OutcomeCode::kPrelinkFailed, 125},
      {OutcomeCode::kOutputGrantRejected, 125},
      {OutcomeCode::kOutputCleanupFailed, 125},
      {OutcomeCode::kWebviewGrantRejected, 125},
      {OutcomeCode::kWebviewCleanupFailed, 125},
      {OutcomeCode::kNonzeroExit, 119},
      {OutcomeCode::kChildNonzeroExit, 119},
      {OutcomeCode::kChildTrapped, 134},
      {OutcomeCode::kChildPanicked, 134},
      {OutcomeCode::kChildOutcomes, 134},
      {OutcomeCode::kValidationReportInvalid, 125},
      {OutcomeCode::kSessionGenerationExhausted, 121},
      {OutcomeCode::kTrapped, 134},
      {OutcomeCode::kMemoryLimit, 121},
      {OutcomeCode::kOutputLimit, 121},
      {OutcomeCode::kStdoutLimit, 121},
      {OutcomeCode::kCpuLimit, 121},
      {OutcomeCode::kCompileLimit, 126},
      {OutcomeCode::kModuleRefused, 126},
      {OutcomeCode::kWorkerInvalidConfiguration, 122},
      {OutcomeCode::kWorkerLaunch, 125},
      {OutcomeCode::kWorkerProtocol, 125},
      {OutcomeCode::kWorkerUnexpectedExit, 125},
      {OutcomeCode::kWorkerContainmentCleanup, 125},
      {OutcomeCode::kWorkerLingered, 125},
      {OutcomeCode::kWorkerChildFailure, 134},
      {OutcomeCode::kWorkerReportedFailure, 125},
      {OutcomeCode::kWorkerForcedContainment, 125},
      {OutcomeCode::kWorkerOutputGrant, 125},
      {OutcomeCode::kWorkerOutputCommit, 125},
      {OutcomeCode::kWorkerOutputCleanup, 125},
      {OutcomeCode::kWorkerOutputCommittedCleanup, 125},
      {OutcomeCode::kOutOfMemory, 121},
      {OutcomeCode::kStdoutClosed, 141},
  };
  return kRows;
}

Outcome OutcomeOf(OutcomeCode code) {
  Outcome outcome;
  outcome.code = code;
  return outcome;
}

TEST(ExitStatus, EveryOutcomeCodeHasItsStatus) {
  std::set<OutcomeCode> seen;
  for (const Row& row : Rows()) {
    EXPECT_EQ(ExitStatusOf(OutcomeOf(row.code), 0), row.status) << OutcomeCodeName(row.code);
    seen.insert(row.code);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kLastOutcomeCode) + 1);
}

TEST(ExitStatus, SignalDecidesTheStatusOfACancelledRun) {
  for (const OutcomeCode code :
       {OutcomeCode::kCancelled, OutcomeCode::kForcedContainmentCancelled}) {
    EXPECT_EQ(ExitStatusOf(OutcomeOf(code), SIGINT), 130);
    EXPECT_EQ(ExitStatusOf(OutcomeOf(code), SIGTERM), 143);
    EXPECT_EQ(ExitStatusOf(OutcomeOf(code), SIGHUP), 129);
  }
  // A run that was over when the signal came keeps its own status.
  EXPECT_EQ(ExitStatusOf(OutcomeOf(OutcomeCode::kWorkerCompleted), SIGINT), 0);
  EXPECT_EQ(ExitStatusOf(OutcomeOf(OutcomeCode::kTrapped), SIGTERM), 134);
}

TEST(Case, G10GuestCodesNeverLookLikeOurs) {
  const struct {
    std::int32_t code;
    int status;
  } rows[] = {{1, 1},     {3, 3},     {119, 119}, {120, 119}, {124, 119},       {125, 119},
              {126, 119}, {137, 119}, {255, 119}, {256, 119}, {INT32_MAX, 119}, {-1, 119}};

  for (const auto& row : rows) {
    Outcome outcome = OutcomeOf(OutcomeCode::kNonzeroExit);
    outcome.guest_exit = row.code;
    EXPECT_EQ(ExitStatusOf(outcome, 0), row.status) << row.code;
  }
}

TEST(ExitStatus, AMissingModuleIsNotARefusedOne) {
  Outcome outcome = OutcomeOf(OutcomeCode::kModuleRefused);
  outcome.reason = kReasonNotFound;
  EXPECT_EQ(ExitStatusOf(outcome, 0), 127);
  outcome.reason = kReasonUnreadable;
  EXPECT_EQ(ExitStatusOf(outcome, 0), 126);
}

}  // namespace
}  // namespace bulkhead::cli
