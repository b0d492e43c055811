#include <bulkhead/outcome.h>

#include <array>

#include "base/check.h"

namespace bulkhead {
namespace {

struct CodeRow {
  OutcomeCode code;
  std::string_view name;
  OutcomeKind kind;
};

// In the order of OutcomeCode; the static_assert below holds them together.
constexpr std::array kCodes{
    CodeRow{OutcomeCode::kWorkerCompleted, "worker-completed", OutcomeKind::kCompleted},
    CodeRow{OutcomeCode::kCancelled, "cancelled", OutcomeKind::kStopped},
    CodeRow{OutcomeCode::kDeadlineExceeded, "deadline-exceeded", OutcomeKind::kStopped},
    CodeRow{OutcomeCode::kForcedContainmentCancelled, "forced-containment-cancelled",
            OutcomeKind::kForcedContainment},
    CodeRow{OutcomeCode::kForcedContainmentDeadlineExceeded, "forced-containment-deadline-exceeded",
            OutcomeKind::kForcedContainment},
    CodeRow{OutcomeCode::kThreadedProfileRequired, "threaded-profile-required",
            OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kSharedMemoryLimitExceeded, "shared-memory-limit-exceeded",
            OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kRootExecutionLimitExceeded, "root-execution-limit-exceeded",
            OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kSessionBusy, "session-busy", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kOutOfFuel, "out-of-fuel", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kEpochRegistrationLimitExceeded, "epoch-registration-limit-exceeded",
            OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kForeignRuntime, "foreign-runtime", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kBlockingTaskFailed, "blocking-task-failed", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kContainmentRequired, "containment-required", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kSharedMemoryUnavailable, "shared-memory-unavailable",
            OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kPrelinkFailed, "prelink-failed", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kOutputGrantRejected, "output-grant-rejected", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kOutputCleanupFailed, "output-cleanup-failed", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kWebviewGrantRejected, "webview-grant-rejected", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kWebviewCleanupFailed, "webview-cleanup-failed", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kNonzeroExit, "nonzero-exit", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kChildNonzeroExit, "child-nonzero-exit", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kChildTrapped, "child-trapped", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kChildPanicked, "child-panicked", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kChildOutcomes, "child-outcomes", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kValidationReportInvalid, "validation-report-invalid",
            OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kSessionGenerationExhausted, "session-generation-exhausted",
            OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kTrapped, "trapped", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kMemoryLimit, "memory-limit", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kOutputLimit, "output-limit", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kStdoutLimit, "stdout-limit", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kCpuLimit, "cpu-limit", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kCompileLimit, "compile-limit", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kModuleRefused, "module-refused", OutcomeKind::kExecution},
    CodeRow{OutcomeCode::kWorkerInvalidConfiguration, "worker-invalid-configuration",
            OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerLaunch, "worker-launch", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerProtocol, "worker-protocol", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerUnexpectedExit, "worker-unexpected-exit", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerContainmentCleanup, "worker-containment-cleanup",
            OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerLingered, "worker-lingered", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerChildFailure, "worker-child-failure", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerReportedFailure, "worker-reported-failure", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerForcedContainment, "worker-forced-containment",
            OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerOutputGrant, "worker-output-grant", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerOutputCommit, "worker-output-commit", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerOutputCleanup, "worker-output-cleanup", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kWorkerOutputCommittedCleanup, "worker-output-committed-cleanup",
            OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kOutOfMemory, "out-of-memory", OutcomeKind::kFailure},
    CodeRow{OutcomeCode::kStdoutClosed, "stdout-closed", OutcomeKind::kFailure},
};

constexpr bool RowsAreInOrder() {
  for (std::size_t i = 0; i < kCodes.size(); ++i) {
    if (static_cast<std::size_t>(kCodes[i].code) != i) {
      return false;
    }
  }
  return kCodes.size() == static_cast<std::size_t>(kLastOutcomeCode) + 1;
}

static_assert(RowsAreInOrder());

const CodeRow& RowOf(OutcomeCode code) {
  const auto index = static_cast<std::size_t>(code);
  BH_CHECK(index < kCodes.size());
  return kCodes[index];
}

}  // namespace

std::string_view OutcomeCodeName(OutcomeCode code) {
  return RowOf(code).name;
}

OutcomeKind KindOf(OutcomeCode code) {
  return RowOf(code).kind;
}

std::string Outcome::CodeText() const {
  std::string text(OutcomeCodeName(code));
  if (code == OutcomeCode::kModuleRefused && !reason.empty()) {
    text += "/" + reason;
  }
  return text;
}

std::string_view StopCauseName(StopCause cause) {
  switch (cause) {
    case StopCause::kNone:
      return "none";
    case StopCause::kCancelled:
      return "cancelled";
    case StopCause::kDeadlineExceeded:
      return "deadline-exceeded";
  }
  return "none";
}

std::string_view OutcomeKindName(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::kCompleted:
      return "completed";
    case OutcomeKind::kStopped:
      return "stopped";
    case OutcomeKind::kForcedContainment:
      return "forced-containment";
    case OutcomeKind::kExecution:
      return "execution";
    case OutcomeKind::kFailure:
      return "failure";
  }
  return "failure";
}

std::string_view CompletedAsName(CompletedAs as) {
  switch (as) {
    case CompletedAs::kNone:
      return "none";
    case CompletedAs::kStarted:
      return "started";
    case CompletedAs::kExited:
      return "exited";
    case CompletedAs::kStartedWithThreadRejections:
      return "started-with-thread-rejections";
    case CompletedAs::kExitedWithThreadRejections:
      return "exited-with-thread-rejections";
  }
  return "none";
}

}  // namespace bulkhead
