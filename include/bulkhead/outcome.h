// What became of the work: one value, made in one pure function from what was observed
// (docs/outcomes.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// The first of {cancelled, deadline} that was observed; once latched it never changes. Cancel wins
// a tie.
enum class StopCause : std::uint8_t { kNone, kCancelled, kDeadlineExceeded };

// "none", "cancelled", "deadline-exceeded".
std::string_view StopCauseName(StopCause cause);

enum class OutcomeKind : std::uint8_t {
  kCompleted,  // the guest returned or exited with 0, and its output, if any was granted, is
               // published
  kStopped,    // stopped in time, by its own cooperation
  kForcedContainment,  // stopped by killing the worker
  kExecution,          // the guest's own doing: trap, exit code, fuel, a limit of its own
  kFailure,            // the worker or Bulkhead failed
};

std::string_view OutcomeKindName(OutcomeKind kind);

// Stable codes; OutcomeCodeName gives the text, e.g. "forced-containment-deadline-exceeded".
enum class OutcomeCode : std::uint8_t {
  kWorkerCompleted,
  kCancelled,
  kDeadlineExceeded,
  kForcedContainmentCancelled,
  kForcedContainmentDeadlineExceeded,
  // execution
  kThreadedProfileRequired,
  kSharedMemoryLimitExceeded,
  kRootExecutionLimitExceeded,
  kSessionBusy,
  kOutOfFuel,
  kEpochRegistrationLimitExceeded,
  kForeignRuntime,
  kBlockingTaskFailed,
  kContainmentRequired,
  kSharedMemoryUnavailable,
  kPrelinkFailed,
  kOutputGrantRejected,
  kOutputCleanupFailed,
  kWebviewGrantRejected,
  kWebviewCleanupFailed,
  kNonzeroExit,
  kChildNonzeroExit,
  kChildTrapped,
  kChildPanicked,
  kChildOutcomes,
  kValidationReportInvalid,
  kSessionGenerationExhausted,
  kTrapped,
  kMemoryLimit,
  kOutputLimit,
  kStdoutLimit,
  kCpuLimit,
  kCompileLimit,
  kModuleRefused,  // the text is "module-refused/<reason>"
  // failure
  kWorkerInvalidConfiguration,
  kWorkerLaunch,
  kWorkerProtocol,
  kWorkerUnexpectedExit,
  kWorkerContainmentCleanup,
  kWorkerLingered,
  kWorkerChildFailure,
  kWorkerReportedFailure,
  kWorkerForcedContainment,
  kWorkerOutputGrant,
  kWorkerOutputCommit,
  kWorkerOutputCleanup,
  kWorkerOutputCommittedCleanup,
  kOutOfMemory,   // killed by the kernel for memory, as its own count says
  kStdoutClosed,  // the reader of the guest's stdout left; the run was cancelled for it
};

inline constexpr OutcomeCode kLastOutcomeCode = OutcomeCode::kStdoutClosed;

std::string_view OutcomeCodeName(OutcomeCode code);
OutcomeKind KindOf(OutcomeCode code);

// How a completed guest ended.
enum class CompletedAs : std::uint8_t {
  kNone,
  kStarted,  // the entry point returned
  kExited,   // proc_exit(0)
  kStartedWithThreadRejections,
  kExitedWithThreadRejections,
};

std::string_view CompletedAsName(CompletedAs as);

struct ThreadRejections {
  std::uint32_t capacity = 0;
  std::uint32_t closing = 0;
  std::uint32_t fuel = 0;
  std::uint32_t epoch = 0;

  friend bool operator==(const ThreadRejections&, const ThreadRejections&) = default;
};

struct TrapInfo {
  std::string code;     // "unreachable", "memory-out-of-bounds", "stack-overflow", ...
  std::string message;  // the engine's words; names in it are chosen by the guest
  std::uint32_t thread = 0;
  std::vector<std::string> backtrace;  // at most 64 frames, 8 KiB, innermost first
};

// What the kernel tells of the memory of a worker and everything it started, where a cgroup limits
// that (mechanism "cgroup-memory").
struct CgroupMemory {
  std::uint64_t limit_bytes = 0;
  std::uint64_t peak_bytes = 0;  // 0: not known (version 2, in a cgroup with a higher peak before)
  std::uint64_t oom_kills = 0;   // processes of the worker that the kernel killed for memory
  // The worker met this limit. If it was killed and this is false, the memory of the machine, or of
  // a cgroup around, had run out.
  bool limit_reached = false;

  friend bool operator==(const CgroupMemory&, const CgroupMemory&) = default;
};

struct Outcome {
  OutcomeCode code = OutcomeCode::kWorkerUnexpectedExit;
  CompletedAs completed_as = CompletedAs::kNone;
  ThreadRejections rejections;
  std::optional<std::int32_t>
      guest_exit;  // of kNonzeroExit, kChildNonzeroExit; 0 when completed by exit
  std::optional<TrapInfo> trap;
  std::optional<CgroupMemory> out_of_memory;  // of kOutOfMemory
  std::string reason;                         // of kModuleRefused: the refusal code

  OutcomeKind kind() const { return KindOf(code); }

  bool completed() const { return code == OutcomeCode::kWorkerCompleted; }

  bool forced() const { return kind() == OutcomeKind::kForcedContainment; }

  // The stable text: OutcomeCodeName, with "/<reason>" for a refused module.
  std::string CodeText() const;
};

}  // namespace bulkhead
