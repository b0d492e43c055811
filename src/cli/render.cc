#include "cli/render.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <string_view>

#include "base/strings.h"
#include "cli/exit_status.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace bulkhead::cli {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

constexpr std::size_t kFramesShownMax = 8;      // the innermost say where it happened
constexpr std::size_t kTailLinesShownMax = 10;  // a panic message and its surroundings

std::string Completed(const RunReport& report) {
  std::string text = fmt::format("completed in {}", FormatDuration(report.elapsed));
  if (report.output && report.output->published) {
    text += fmt::format(", wrote {} ({})", OneLine(report.output->path),
                        FormatSize(report.output->bytes));
  }
  return text;
}

std::string Stopped(const RunRecord& record, const RunOptions& options) {
  const RunReport& report = record.report;
  const std::string cause =
      report.stop == StopCause::kDeadlineExceeded
          ? fmt::format("deadline of {} exceeded",
                        FormatDuration(duration_cast<microseconds>(options.limits.deadline)))
          : fmt::format("cancelled by {}",
                        record.signal == 0 ? "request" : SignalName(record.signal));
  return fmt::format("{} after {}{}", cause, FormatDuration(report.elapsed),
                     report.outcome.forced() ? ", the worker was killed" : "");
}

// The option that raises the limit a run has met, empty if there is none.
std::string_view OptionOf(OutcomeCode code) {
  struct Row {
    OutcomeCode code;
    std::string_view option;
  };

  constexpr Row kRows[] = {{OutcomeCode::kOutOfFuel, "--fuel"},
                           {OutcomeCode::kMemoryLimit, "--memory"},
                           {OutcomeCode::kOutputLimit, "--output-limit"},
                           {OutcomeCode::kStdoutLimit, "--stdout-limit"},
                           {OutcomeCode::kCpuLimit, "--cpu-time"},
                           {OutcomeCode::kCompileLimit, "--compile-memory"}};
  for (const Row& row : kRows) {
    if (row.code == code) {
      return row.option;
    }
  }
  return {};
}

// Of compiling two things are limited.
std::string_view OptionOf(const RunReport& report) {
  const bool in_time = std::none_of(
      report.limits.begin(), report.limits.end(),
      [](const LimitUse& limit) { return limit.reached && limit.name == "compile-time-ms"; });
  return in_time ? OptionOf(report.outcome.code) : "--compile-time";
}

std::string Limited(const RunReport& report) {
  const std::string_view option = OptionOf(report);
  const std::string what(OutcomeCodeName(report.outcome.code));
  const std::string detail =
      report.diagnostic.empty() ? std::string() : fmt::format(": {}", OneLine(report.diagnostic));
  return fmt::format("{}{}{}", what, detail,
                     option.empty() ? "" : fmt::format(" ({} sets this limit)", option));
}

std::string Trapped(const RunReport& report) {
  const auto& trap = report.outcome.trap;
  if (!trap) {
    return fmt::format("the guest trapped: {}", OneLine(report.diagnostic));
  }
  std::string text = fmt::format("the guest trapped: {}", OneLine(trap->code));
  if (!trap->message.empty()) {
    text += fmt::format(": {}", OneLine(trap->message));
  }
  if (report.memory_growth_refused) {
    text += " (it had been refused more memory than --memory allows)";
  }
  const std::size_t shown = std::min(trap->backtrace.size(), kFramesShownMax);
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("\n    {}", OneLine(trap->backtrace[i]));
  }
  if (shown < trap->backtrace.size()) {
    text +=
        fmt::format("\n    ... {} more frames are in the report", trap->backtrace.size() - shown);
  }
  return text;
}

std::string GuestExit(const RunReport& report) {
  std::string text =
      fmt::format("the guest exited with {} after {}", report.outcome.guest_exit.value_or(-1),
                  FormatDuration(report.elapsed));
  if (report.memory_growth_refused) {
    text += "; it had been refused more memory than --memory allows";
  }
  return text;
}

std::string Refused(const RunReport& report) {
  const std::string& reason = report.outcome.reason;
  if (reason == kReasonNotFound || reason == kReasonUnreadable) {
    return OneLine(report.diagnostic);
  }
  return fmt::format("module refused ({}): {}", OneLine(reason), OneLine(report.diagnostic));
}

// The last lines of what the worker program said.
std::string TailLines(std::string_view tail) {
  while (tail.ends_with('\n')) {
    tail.remove_suffix(1);
  }
  if (tail.empty()) {
    return {};
  }
  std::size_t begin = tail.size();
  for (std::size_t lines = 0;
       lines < kTailLinesShownMax && begin != std::string_view::npos && begin > 0; ++lines) {
    begin = tail.rfind('\n', begin - 1);
  }
  std::string_view rest =
      begin == std::string_view::npos || begin == 0 ? tail : tail.substr(begin + 1);
  std::string text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    text += fmt::format("\n    worker: {}", OneLine(line));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return text;
}

std::string Failed(const RunRecord& record) {
  const RunReport& report = record.report;
  std::string text = OneLine(report.diagnostic);
  // A fault found before there was a worker is a sentence that needs no class.
  if (report.worker_pid != 0 || text.empty()) {
    text = fmt::format("{}: {}", OutcomeCodeName(report.outcome.code), text);
  }
  if (!report.worker_exit.empty() && report.worker_exit != "exit 0") {
    text += fmt::format(" (worker: {})", OneLine(report.worker_exit));
  }
  return text + TailLines(report.worker_stderr_tail);
}

std::string Describe(const RunRecord& record, const RunOptions& options) {
  const Outcome& outcome = record.report.outcome;
  switch (outcome.kind()) {
    case OutcomeKind::kCompleted:
      return Completed(record.report);
    case OutcomeKind::kStopped:
    case OutcomeKind::kForcedContainment:
      return Stopped(record, options);
    case OutcomeKind::kExecution:
      if (outcome.code == OutcomeCode::kModuleRefused) {
        return Refused(record.report);
      }
      if (record.exit_status == kExitTrapped) {
        return Trapped(record.report);
      }
      return outcome.guest_exit ? GuestExit(record.report) : Limited(record.report);
    case OutcomeKind::kFailure:
      return outcome.code == OutcomeCode::kOutOfMemory ? Limited(record.report) : Failed(record);
  }
  return Failed(record);
}

bool GuestSpoke(const Outcome& outcome) {
  return outcome.completed() || outcome.code == OutcomeCode::kNonzeroExit ||
         outcome.code == OutcomeCode::kChildNonzeroExit;
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string line = Printable(text);
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string RenderResult(const RunRecord& record, const RunOptions& options, bool colours) {
  const Outcome& outcome = record.report.outcome;
  if (outcome.code == OutcomeCode::kStdoutClosed || (options.quiet && GuestSpoke(outcome))) {
    return {};
  }
  Colour colour = Colour::kRed;
  if (outcome.completed()) {
    colour = Colour::kGreen;
  } else if (GuestSpoke(outcome) || outcome.kind() == OutcomeKind::kStopped) {
    colour = Colour::kYellow;
  }
  return fmt::format("{} {}\n", Coloured("bulkhead:", colour, colours), Describe(record, options));
}

}  // namespace bulkhead::cli
