// `bulkhead run`: the command's half of one run. The library's half is RunModule
// (oneshot/run_module.cc).
#include <bulkhead/deadline.h>

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/event_relay.h"
#include "cli/exit_status.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/render.h"
#include "cli/repeat.h"
#include "cli/report_file.h"
#include "cli/report_json.h"
#include "cli/run_record.h"
#include "cli/run_request.h"
#include "cli/terminal.h"
#include "cli/text_io.h"

namespace bulkhead::cli {
namespace {

using std::chrono::nanoseconds;

// What one invocation carries from step to step.
struct Invocation {
  explicit Invocation(const RunOptions& run_options)
      : options(run_options),
        terminal(TerminalOf(BorrowedFd(STDERR_FILENO))),
        start(std::chrono::steady_clock::now()),
        relay(BorrowedFd(run_options.status_fd.value_or(-1))) {
    record.module.path = run_options.module_path;
  }

  const RunOptions& options;
  Terminal terminal;
  MonotonicTime start;
  EventRelay relay;
  std::unique_ptr<Interrupts>
      interrupts;  // until the report is written: a late Ctrl-C must not lose it
  RunRecord record;
  RepeatPlan plan;
  std::optional<RepeatResult> repeated;  // --repeat: instead of the record's report
};

void SayGrants(const RunOptions& options) {
  const auto writable = std::find_if(options.directories.begin(), options.directories.end(),
                                     [](const DirectoryGrant& grant) { return grant.writable; });
  if (writable != options.directories.end() && !options.quiet) {
    Say(fmt::format(
        "--dir-rw: what the guest writes to {} goes straight to the host and stays, also when the "
        "run fails",
        Quoted(writable->host_path)));
  }
}

// Text of the module format is translated in a worker of its own, under the same limits.
Result<ModuleSource> Binary(Invocation& run, Runtime& runtime, ModuleSource source,
                            const RunRequest& request) {
  if (!source.LooksLikeText()) {
    return source;
  }
  run.relay.set_task("convert");
  auto converted = ConvertText(runtime, source, request);
  run.relay.set_task("run");
  return converted;
}

nanoseconds Passed(const Invocation& run) {
  return std::chrono::steady_clock::now() - run.start;
}

// One deadline covers converting as well; what is left is the library's.
nanoseconds Remaining(const Invocation& run) {
  return std::max(nanoseconds(1), run.options.limits.deadline - Passed(run));
}

// The library knows nothing of the time before it was called.
void CountPreparation(const Invocation& run, nanoseconds preparation, RunReport& report) {
  using std::chrono::duration_cast;
  const auto before = duration_cast<std::chrono::microseconds>(preparation);
  report.durations[static_cast<std::size_t>(Stage::kAdmit)] += before;
  report.elapsed += before;
  for (LimitUse& limit : report.limits) {
    if (limit.name == "deadline-ms") {
      const auto ms = [](auto duration) {
        return static_cast<std::uint64_t>(
            duration_cast<std::chrono::milliseconds>(duration).count());
      };
      limit.used = ms(report.elapsed);
      limit.cap = ms(run.options.limits.deadline);
    }
  }
}

void Repeat(Invocation& run, const RepeatContext& context, bool live) {
  const RunOptions& options = run.options;
  run.plan = {.runs = options.repeat,
              .jobs = options.jobs,
              .keep_reports = !options.report_path.empty(),
              .terminal = BorrowedFd(live ? STDERR_FILENO : -1)};
  run.repeated = RunRepeatedly(context, run.plan);
}

// The steps of the run; an Error is the end of it before the library could report.
Status Perform(Invocation& run) {
  const RunOptions& options = run.options;
  if (options.status_fd) {
    BH_TRY(
        CheckStatusFd(*options.status_fd));  // first: the number must not be a descriptor of ours
  }
  PreparedRun prepared = BH_TRY(PrepareRun(options));
  RunRequest& request = prepared.request;
  ModulePolicy policy;
  policy.profile = options.profile;
  policy.memory_bytes_max = options.limits.memory_bytes;
  auto file = ModuleSource::FromFile(options.module_path, policy.module_bytes_max);
  if (!file) {
    return Fail(ModuleFailure(std::move(file).error()));
  }
  run.start = std::chrono::steady_clock::now();  // waiting for the module is not a part of the run
  run.interrupts = BH_TRY(Interrupts::Create());
  request.cancel = run.interrupts->cancel();
  request.force = run.interrupts->force();
  RuntimeOptions runtime_options;
  runtime_options.observer = &run.relay;
  OpenedCache cache = BH_TRY(OpenCache(options.cache));
  runtime_options.code_cache = std::move(cache.cache);
  const auto runtime = BH_TRY(Runtime::Create(runtime_options));
  request.limits.deadline = Remaining(run);
  ModuleSource source = BH_TRY(Binary(run, *runtime, *std::move(file), request));
  run.record.module.bytes = source.bytes().size();
  const AdmittedModule module = BH_TRY(std::move(source).Admit(policy));
  run.record.module.profile = module.info().profile;
  SayGrants(options);
  const nanoseconds preparation = Passed(run);
  request.limits.deadline = Remaining(run);
  const bool live = run.terminal.live && !options.quiet;
  if (options.repeated) {
    request.limits.deadline = options.limits.deadline;
    run.record.module.sha256 = module.sha256();
    Repeat(run, {*runtime, module, request, run.record, *run.interrupts}, live);
    return {};
  }
  RunHandle handle = BH_TRY(StartRun(*runtime, module, std::move(request)));
  run.record.report = WaitForRun(handle, run.relay, BorrowedFd(live ? STDERR_FILENO : -1));
  CountPreparation(run, preparation, run.record.report);
  if (!cache.problem.empty()) {
    run.record.report.code.problem = std::move(cache.problem);
  }
  if (!options.report_path.empty()) {
    run.record.module.sha256 = module.sha256();
  }
  return {};
}

// Writes the report, and says so if that fails; the exit status with that in mind.
int Conclude(Invocation& run, const std::optional<ReportDestination>& destination) {
  RunRecord& record = run.record;
  const std::string text = RenderResult(record, run.options, run.terminal.colours);
  static_cast<void>(WriteAll(BorrowedFd(STDERR_FILENO), text));
  if (destination) {
    if (const Status written = destination->Write(RunReportJson(record)); !written) {
      Say("--report: " + written.error().message);
      record.exit_status = record.exit_status == kExitOk ? kExitFailed : record.exit_status;
    }
  }
  run.relay.End(record.report.outcome.CodeText(), record.exit_status);
  return record.exit_status;
}

int ConcludeRepeated(Invocation& run, const std::optional<ReportDestination>& destination) {
  RepeatResult& result = *run.repeated;
  if (!run.options.quiet) {
    static_cast<void>(WriteAll(BorrowedFd(STDERR_FILENO), RenderRepeat(result, run.plan)));
  }
  if (destination) {
    const std::string text = result.reports + RepeatSummaryLine(result, run.plan);
    if (const Status written = destination->Write(text); !written) {
      Say("--report: " + written.error().message);
      result.exit_status = result.exit_status == kExitOk ? kExitFailed : result.exit_status;
    }
  }
  return result.exit_status;
}

}  // namespace

int CmdRun(const RunOptions& options) {
  std::optional<ReportDestination> destination;
  if (!options.report_path.empty()) {
    auto resolved = ReportDestination::Resolve(options.report_path);
    if (!resolved) {
      Say("--report: " + resolved.error().message);
      return kExitFailed;
    }
    destination = *std::move(resolved);
  }
  Invocation run(options);
  const Status performed = Perform(run);
  run.record.signal = run.interrupts ? run.interrupts->first_signal() : 0;
  if (run.repeated) {
    return ConcludeRepeated(run, destination);
  }
  if (performed) {
    run.record.exit_status = ExitStatusOf(run.record.report.outcome, run.record.signal);
  } else {
    RecordFailure(performed.error(), run.record);
    run.record.report.elapsed = std::chrono::duration_cast<std::chrono::microseconds>(Passed(run));
  }
  return Conclude(run, destination);
}

}  // namespace bulkhead::cli
