#include "supervise/classify.h"

#include <charconv>
#include <csignal>

namespace bulkhead::supervise {
namespace {

Outcome Make(OutcomeCode code) {
  Outcome outcome;
  outcome.code = code;
  return outcome;
}

OutcomeCode StoppedBy(StopCause stop) {
  return stop == StopCause::kCancelled ? OutcomeCode::kCancelled : OutcomeCode::kDeadlineExceeded;
}

OutcomeCode ForcedBy(StopCause stop) {
  return stop == StopCause::kCancelled ? OutcomeCode::kForcedContainmentCancelled
                                       : OutcomeCode::kForcedContainmentDeadlineExceeded;
}

OutcomeCode LimitCode(wire::Terminal::Limit limit) {
  switch (limit) {
    case wire::Terminal::Limit::kNone:
    case wire::Terminal::Limit::kMemory:
      return OutcomeCode::kMemoryLimit;
    case wire::Terminal::Limit::kCompile:
      return OutcomeCode::kCompileLimit;
    case wire::Terminal::Limit::kOutput:
      return OutcomeCode::kOutputLimit;
  }
  return OutcomeCode::kMemoryLimit;
}

OutcomeCode TerminalCode(const wire::Terminal& terminal) {
  using Kind = wire::Terminal::Kind;
  switch (terminal.kind) {
    case Kind::kCompleted:
      return OutcomeCode::kWorkerCompleted;
    case Kind::kCancelled:
      return OutcomeCode::kCancelled;
    case Kind::kDeadlineExceeded:
      return OutcomeCode::kDeadlineExceeded;
    case Kind::kOutOfFuel:
      return OutcomeCode::kOutOfFuel;
    case Kind::kTrapped:
      return OutcomeCode::kTrapped;
    case Kind::kNonzeroExit:
      return OutcomeCode::kNonzeroExit;
    case Kind::kChildFailure:
      return terminal.status ? OutcomeCode::kChildNonzeroExit : OutcomeCode::kWorkerChildFailure;
    case Kind::kWorkerFailure:
    case Kind::kCodeRefused:  // of code that fits, for all the parent knows
      return OutcomeCode::kWorkerReportedFailure;
    case Kind::kForcedContainment:
      return OutcomeCode::kWorkerForcedContainment;
    case Kind::kModuleRefused:
      return OutcomeCode::kModuleRefused;
    case Kind::kLimitReached:
      return LimitCode(terminal.limit);
    case Kind::kNone:
    case Kind::kProtocolFailure:
      return OutcomeCode::kWorkerProtocol;
  }
  return OutcomeCode::kWorkerProtocol;
}

bool Signalled(const Facts& facts, int signal) {
  return facts.exit && facts.exit->how == process::ExitStatus::How::kSignalled &&
         facts.exit->code == signal;
}

// The kernel sends SIGXCPU at the soft limit, which is the caller's, and SIGKILL a second later at
// the hard one to a worker that ignores that; whether a SIGKILL was for CPU time the accounts tell.
bool HitCpuLimit(const Facts& facts) {
  if (!facts.exited_by_itself || !facts.cpu_limit) {
    return false;
  }
  return Signalled(facts, SIGXCPU) ||
         (Signalled(facts, SIGKILL) && facts.cpu_used >= *facts.cpu_limit);
}

// A SIGKILL that is not ours is the memory killer's where the kernel counted one in the worker's
// own cgroup; anybody can send the signal, nobody but the kernel counts.
bool KilledForMemory(const Facts& facts) {
  return facts.exited_by_itself && Signalled(facts, SIGKILL) && facts.memory &&
         facts.memory->oom_kills != 0;
}

// The worker ended without a report that counts: did a limit of ours end it?
Outcome ClassifyUnexpectedExit(const Facts& facts) {
  if (KilledForMemory(facts)) {
    Outcome outcome = Make(OutcomeCode::kOutOfMemory);
    outcome.out_of_memory = facts.memory;
    return outcome;
  }
  if (HitCpuLimit(facts)) {
    return Make(OutcomeCode::kCpuLimit);
  }
  if (Signalled(facts, SIGABRT) && FailedAllocationBytes(facts.worker_stderr)) {
    return Make(facts.guest_started ? OutcomeCode::kMemoryLimit : OutcomeCode::kCompileLimit);
  }
  return Make(OutcomeCode::kWorkerUnexpectedExit);
}

Outcome ClassifyReported(const Facts& facts) {
  if (!facts.exit || !facts.exit->clean()) {
    return ClassifyUnexpectedExit(facts);
  }
  if (facts.stop != StopCause::kNone) {
    return Make(StoppedBy(facts.stop));
  }
  return MapTerminal(*facts.terminal);
}

Outcome ClassifyVerdict(const Facts& facts) {
  switch (facts.verdict) {
    case Verdict::kReported:
      return ClassifyReported(facts);
    case Verdict::kForcedStop:
      return Make(ForcedBy(facts.stop));
    case Verdict::kProtocol:
      return Make(OutcomeCode::kWorkerProtocol);
    case Verdict::kLingered:
      return Make(OutcomeCode::kWorkerLingered);
    case Verdict::kLockDown:
      return Make(OutcomeCode::kWorkerLaunch);
    case Verdict::kCompileTime:
      return Make(OutcomeCode::kCompileLimit);
    case Verdict::kNone:
    case Verdict::kUnexpectedExit:
      return ClassifyUnexpectedExit(facts);
  }
  return ClassifyUnexpectedExit(facts);
}

// A stop that we decided ourselves keeps its own name, forced or not.
OutcomeCode NameOwnStop(const Facts& facts, OutcomeCode code) {
  const OutcomeKind kind = KindOf(code);
  if (kind != OutcomeKind::kStopped && kind != OutcomeKind::kForcedContainment) {
    return code;
  }
  if (facts.stdout_limit_reached) {
    return OutcomeCode::kStdoutLimit;
  }
  return facts.stdout_closed ? OutcomeCode::kStdoutClosed : code;
}

}  // namespace

std::optional<std::uint64_t> FailedAllocationBytes(std::string_view worker_stderr) {
  constexpr std::string_view kBefore = "memory allocation of ";
  constexpr std::string_view kAfter = " bytes failed";
  const std::size_t start = worker_stderr.rfind(kBefore);
  if (start == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = worker_stderr.substr(start + kBefore.size());
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), bytes);
  if (error != std::errc() ||
      !rest.substr(static_cast<std::size_t>(end - rest.data())).starts_with(kAfter)) {
    return std::nullopt;
  }
  return bytes;
}

Outcome MapTerminal(const wire::Terminal& terminal) {
  Outcome outcome = Make(TerminalCode(terminal));
  outcome.reason = terminal.reason;
  outcome.guest_exit = terminal.status;
  outcome.completed_as = static_cast<CompletedAs>(terminal.completed_as);
  if (outcome.completed()) {
    outcome.guest_exit = 0;
    outcome.rejections = {terminal.rejections.capacity, terminal.rejections.closing,
                          terminal.rejections.fuel, terminal.rejections.epoch};
  }
  if (terminal.trap) {
    outcome.trap = TrapInfo{terminal.trap->code, terminal.trap->message, terminal.trap->thread,
                            terminal.trap->backtrace};
  }
  return outcome;
}

Outcome Classify(const Facts& facts) {
  if (!facts.contained) {
    return Make(OutcomeCode::kWorkerContainmentCleanup);
  }
  Outcome outcome = ClassifyVerdict(facts);
  outcome.code = NameOwnStop(facts, outcome.code);
  return outcome;
}

}  // namespace bulkhead::supervise
