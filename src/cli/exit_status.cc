#include "cli/exit_status.h"

#include <csignal>

namespace bulkhead::cli {
namespace {

int GuestStatus(const Outcome& outcome) {
  const std::int32_t code = outcome.guest_exit.value_or(kExitGuestMax);
  return code >= 1 && code <= kExitGuestMax ? code : kExitGuestMax;
}

}  // namespace

int ExitStatusOf(const Outcome& outcome, int signal) {
  switch (outcome.code) {
    case OutcomeCode::kWorkerCompleted:
      return kExitOk;
    case OutcomeCode::kCancelled:
    case OutcomeCode::kForcedContainmentCancelled:
      return kExitSignalBase + (signal == 0 ? SIGINT : signal);
    case OutcomeCode::kDeadlineExceeded:
    case OutcomeCode::kForcedContainmentDeadlineExceeded:
      return kExitDeadline;
    case OutcomeCode::kNonzeroExit:
    case OutcomeCode::kChildNonzeroExit:
      return GuestStatus(outcome);
    case OutcomeCode::kOutOfFuel:
      return kExitOutOfFuel;
    case OutcomeCode::kMemoryLimit:
    case OutcomeCode::kOutputLimit:
    case OutcomeCode::kStdoutLimit:
    case OutcomeCode::kCpuLimit:
    case OutcomeCode::kOutOfMemory:
    case OutcomeCode::kSharedMemoryLimitExceeded:
    case OutcomeCode::kRootExecutionLimitExceeded:
    case OutcomeCode::kEpochRegistrationLimitExceeded:
    case OutcomeCode::kSessionGenerationExhausted:
      return kExitLimit;
    case OutcomeCode::kWorkerInvalidConfiguration:
      return kExitUsage;
    case OutcomeCode::kModuleRefused:
      return outcome.reason == kReasonNotFound ? kExitNotFound : kExitRefused;
    case OutcomeCode::kCompileLimit:
    case OutcomeCode::kThreadedProfileRequired:
      return kExitRefused;
    case OutcomeCode::kTrapped:
    case OutcomeCode::kWorkerChildFailure:  // it is the guest that failed
    case OutcomeCode::kChildTrapped:
    case OutcomeCode::kChildPanicked:
    case OutcomeCode::kChildOutcomes:
      return kExitTrapped;
    case OutcomeCode::kStdoutClosed:
      return kExitStdoutClosed;
    case OutcomeCode::kSessionBusy:
    case OutcomeCode::kForeignRuntime:
    case OutcomeCode::kBlockingTaskFailed:
    case OutcomeCode::kContainmentRequired:
    case OutcomeCode::kSharedMemoryUnavailable:
    case OutcomeCode::kPrelinkFailed:
    case OutcomeCode::kOutputGrantRejected:
    case OutcomeCode::kOutputCleanupFailed:
    case OutcomeCode::kWebviewGrantRejected:
    case OutcomeCode::kWebviewCleanupFailed:
    case OutcomeCode::kValidationReportInvalid:
    case OutcomeCode::kWorkerLaunch:
    case OutcomeCode::kWorkerProtocol:
    case OutcomeCode::kWorkerUnexpectedExit:
    case OutcomeCode::kWorkerContainmentCleanup:
    case OutcomeCode::kWorkerLingered:
    case OutcomeCode::kWorkerReportedFailure:
    case OutcomeCode::kWorkerForcedContainment:
    case OutcomeCode::kWorkerOutputGrant:
    case OutcomeCode::kWorkerOutputCommit:
    case OutcomeCode::kWorkerOutputCleanup:
    case OutcomeCode::kWorkerOutputCommittedCleanup:
      return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace bulkhead::cli
