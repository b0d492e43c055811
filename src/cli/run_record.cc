#include "cli/run_record.h"

#include <optional>
#include <string_view>

#include "cli/exit_status.h"

namespace bulkhead::cli {
namespace {

std::optional<OutcomeCode> CodeNamed(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(kLastOutcomeCode); ++i) {
    const auto code = static_cast<OutcomeCode>(i);
    if (OutcomeCodeName(code) == name) {
      return code;
    }
  }
  return std::nullopt;
}

OutcomeCode CodeOf(const Error& error) {
  if (const auto code = CodeNamed(error.reason)) {
    return *code;
  }
  switch (error.code) {
    case ErrorCode::kModuleRefused:
      return OutcomeCode::kModuleRefused;
    case ErrorCode::kInvalidArgument:
      return OutcomeCode::kWorkerInvalidConfiguration;
    case ErrorCode::kOutput:
      return OutcomeCode::kWorkerOutputGrant;
    case ErrorCode::kProtocol:
      return OutcomeCode::kWorkerProtocol;
    case ErrorCode::kNotFound:
    case ErrorCode::kIo:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kUnsupported:
    case ErrorCode::kLaunch:
    case ErrorCode::kShutdown:
    case ErrorCode::kInternal:
      return OutcomeCode::kWorkerLaunch;
  }
  return OutcomeCode::kWorkerLaunch;
}

StopCause StopOf(OutcomeCode code) {
  switch (KindOf(code)) {
    case OutcomeKind::kStopped:
    case OutcomeKind::kForcedContainment:
      return code == OutcomeCode::kCancelled || code == OutcomeCode::kForcedContainmentCancelled
                 ? StopCause::kCancelled
                 : StopCause::kDeadlineExceeded;
    case OutcomeKind::kCompleted:
    case OutcomeKind::kExecution:
    case OutcomeKind::kFailure:
      return StopCause::kNone;
  }
  return StopCause::kNone;
}

}  // namespace

Error ModuleFailure(Error error) {
  if (error.code == ErrorCode::kModuleRefused || error.code == ErrorCode::kInvalidArgument) {
    return error;
  }
  error.reason = error.code == ErrorCode::kNotFound ? kReasonNotFound : kReasonUnreadable;
  error.code = ErrorCode::kModuleRefused;
  error.message = "cannot read the module: " + error.message;
  return error;
}

void RecordFailure(const Error& error, RunRecord& record) {
  Outcome& outcome = record.report.outcome;
  outcome = Outcome{};
  outcome.code = CodeOf(error);
  if (outcome.code == OutcomeCode::kModuleRefused) {
    outcome.reason = error.reason;
  }
  record.report.stop = StopOf(outcome.code);
  record.report.diagnostic = error.message;
  record.exit_status =
      error.code == ErrorCode::kNotFound ? kExitNotFound : ExitStatusOf(outcome, record.signal);
}

}  // namespace bulkhead::cli
