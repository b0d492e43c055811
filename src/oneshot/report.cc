#include "oneshot/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/strings.h"

namespace bulkhead::oneshot {
namespace {

constexpr std::size_t kDiagnosticBytesMax = 2048;

std::string SignalName(int signal) {
  const char* text = sigdescr_np(signal);
  return fmt::format("signal {} ({})", signal, text != nullptr ? text : "unknown");
}

std::string DiagnoseUnexpectedExit(const supervise::ExchangeResult& result,
                                   const RunReport& report) {
  const auto& exit = result.facts.exit;
  const bool forbidden_call =
      exit && exit->how == process::ExitStatus::How::kSignalled && exit->code == SIGSYS;
  return fmt::format("the worker ended without a result: {}{}", report.worker_exit,
                     forbidden_call ? ", killed for a forbidden system call" : "");
}

std::string DiagnoseOutOfMemory(const CgroupMemory& memory) {
  const std::string killed = fmt::format(
      "the kernel killed the worker for memory ({} of its processes)", memory.oom_kills);
  const std::string peak = memory.peak_bytes == 0 ? std::string("an unknown amount")
                                                  : fmt::format("{} bytes", memory.peak_bytes);
  return memory.limit_reached
             ? fmt::format("{}: it used {} of the {} bytes that its cgroup allows", killed, peak,
                           memory.limit_bytes)
             : fmt::format(
                   "{}: it used {} and never met its own limit of {} bytes; the memory of "
                   "the machine, or of a cgroup around, had run out",
                   killed, peak, memory.limit_bytes);
}

// What a person wants to know first: the limit, else what broke, else the worker's own words.
std::string Diagnose(const supervise::ExchangeResult& result, const RunReport& report) {
  const OutcomeCode code = report.outcome.code;
  const auto failed = supervise::FailedAllocationBytes(result.facts.worker_stderr);
  if ((code == OutcomeCode::kCompileLimit || code == OutcomeCode::kMemoryLimit) && failed) {
    return fmt::format("an allocation of {} bytes was refused while {}", *failed,
                       result.facts.guest_started ? "the guest ran" : "the module was compiled");
  }
  if (report.outcome.out_of_memory) {
    return DiagnoseOutOfMemory(*report.outcome.out_of_memory);
  }
  if (code == OutcomeCode::kCpuLimit) {
    return fmt::format("the worker used {} ms of CPU time", result.use.cpu.count() / 1000);
  }
  if (result.facts.verdict == supervise::Verdict::kCompileTime) {
    return "compiling the module took longer than it may";
  }
  if (code == OutcomeCode::kWorkerUnexpectedExit) {
    return DiagnoseUnexpectedExit(result, report);
  }
  if (code == OutcomeCode::kWorkerLingered) {
    return "the worker reported its result but did not exit in time";
  }
  if (!result.problem.empty()) {
    return result.problem;
  }
  return result.facts.terminal ? ToValidUtf8(result.facts.terminal->diagnostic) : std::string();
}

// A report that a latched stop, a protocol fault or the end of the worker outranked stays visible.
std::string MaskedCode(const supervise::ExchangeResult& result, const Outcome& outcome) {
  if (!result.facts.terminal || !result.facts.terminal->counters.zero()) {
    return {};
  }
  const Outcome reported = supervise::MapTerminal(*result.facts.terminal);
  // The worker cannot know for which cause it was asked to stop.
  const bool answer_to_stop =
      reported.kind() == OutcomeKind::kStopped && outcome.kind() == OutcomeKind::kStopped;
  return answer_to_stop || reported.CodeText() == outcome.CodeText() ? std::string()
                                                                     : reported.CodeText();
}

void FillStreams(supervise::Exchange& exchange, RunReport& report) {
  if (supervise::GuestOutput* out = exchange.guest_stdout(); out != nullptr) {
    report.stdout_bytes = out->bytes();
    report.stdout_undelivered_bytes = out->undelivered_bytes();
    report.stdout_captured = out->TakeCapture();
  }
  if (supervise::GuestOutput* err = exchange.guest_stderr(); err != nullptr) {
    report.stderr_bytes = err->bytes();
    report.stderr_captured = err->TakeCapture();
  }
}

}  // namespace

void StageClock::Adopt(const std::array<MonotonicTime, kStageCount>& entered) {
  for (std::size_t i = 0; i < kStageCount; ++i) {
    if (entered[i] != MonotonicTime{}) {
      Enter(static_cast<Stage>(i), entered[i]);
    }
  }
}

void StageClock::Close(MonotonicTime end,
                       std::array<std::chrono::microseconds, kStageCount>& durations) {
  std::stable_sort(marks_.begin(), marks_.end(),
                   [](const Mark& a, const Mark& b) { return a.when < b.when; });
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    const MonotonicTime next = i + 1 < marks_.size() ? marks_[i + 1].when : end;
    durations[static_cast<std::size_t>(marks_[i].stage)] +=
        std::chrono::duration_cast<std::chrono::microseconds>(next - marks_[i].when);
  }
}

std::string DescribeExit(const process::ExitStatus& exit) {
  switch (exit.how) {
    case process::ExitStatus::How::kExited:
      return fmt::format("exit {}", exit.code);
    case process::ExitStatus::How::kSignalled:
      return SignalName(exit.code);
    case process::ExitStatus::How::kUnknown:
      return "reaped by somebody else";
  }
  return {};
}

void FillFromExchange(supervise::ExchangeResult& result, supervise::Exchange& exchange,
                      RunReport& report) {
  report.stage = result.stage;
  report.stop = result.facts.stop;
  report.containment.insert(report.containment.end(), result.ack.mechanisms.begin(),
                            result.ack.mechanisms.end());
  report.cpu += result.use.cpu;
  report.memory_peak_bytes = std::max(report.memory_peak_bytes, result.use.rss_bytes_peak);
  report.cgroup_memory = result.use.cgroup_memory;
  report.trace = result.trace;
  report.worker_stderr_tail = result.facts.worker_stderr;
  report.worker_exit = result.facts.exit ? DescribeExit(*result.facts.exit) : std::string();
  const wire::Terminal::Facts facts =
      result.facts.terminal ? result.facts.terminal->facts : wire::Terminal::Facts{};
  report.memory_growth_refused = facts.memory_growth_refused;
  report.guest_memory_bytes_peak = facts.memory_bytes_peak;
  report.fuel_used = facts.fuel_used;
  report.output_created = facts.output_created;
  report.masked_code = MaskedCode(result, report.outcome);
  report.diagnostic = CutUtf8(Diagnose(result, report), kDiagnosticBytesMax);
  FillStreams(exchange, report);
}

void FillFromCommit(const staging::CommitResult& commit, RunReport& report) {
  report.output->published = commit.published;
  report.output->bytes = commit.bytes;
  report.output->sha256 = commit.sha256;
  if (commit.failed_at != staging::CommitStep::kNone) {
    report.diagnostic = commit.detail.message;
  } else if (commit.removal_failed) {
    report.diagnostic = commit.removal_detail.message;
  }
}

void FillLimits(const RunRequest& request, bool compile_time_reached, RunReport& report) {
  const auto add = [&](std::string name, std::uint64_t used, std::uint64_t cap, bool reached) {
    report.limits.push_back({std::move(name), used, cap, reached});
  };
  const auto ms = [](std::chrono::nanoseconds duration) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  };
  const OutcomeCode code = report.outcome.code;
  const RunLimits& limits = request.limits;
  add("deadline-ms", ms(report.elapsed), ms(limits.deadline),
      report.stop == StopCause::kDeadlineExceeded);
  add("memory-bytes", report.guest_memory_bytes_peak, limits.memory_bytes,
      code == OutcomeCode::kMemoryLimit || report.memory_growth_refused);
  add("compile-memory-bytes", 0, limits.compile_memory_bytes,
      code == OutcomeCode::kCompileLimit && !compile_time_reached);
  add("compile-time-ms", ms(report.durations[static_cast<std::size_t>(Stage::kCompile)]),
      ms(limits.compile_time), compile_time_reached);
  if (report.cgroup_memory) {
    add("cgroup-memory-bytes", report.cgroup_memory->peak_bytes, report.cgroup_memory->limit_bytes,
        code == OutcomeCode::kOutOfMemory && report.cgroup_memory->limit_reached);
  }
  if (limits.cpu_time) {
    add("cpu-ms", ms(report.cpu), ms(*limits.cpu_time), code == OutcomeCode::kCpuLimit);
  }
  if (limits.fuel) {
    add("fuel", report.fuel_used, *limits.fuel, code == OutcomeCode::kOutOfFuel);
  }
  if (limits.stdout_bytes_max != 0) {
    add("stdout-bytes", report.stdout_bytes, limits.stdout_bytes_max,
        code == OutcomeCode::kStdoutLimit);
  }
  if (request.output) {
    add("output-bytes", report.output ? report.output->bytes : 0, request.output->bytes_max,
        code == OutcomeCode::kOutputLimit);
  }
}

}  // namespace bulkhead::oneshot
