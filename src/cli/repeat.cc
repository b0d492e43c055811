#include "cli/repeat.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "cli/exit_status.h"
#include "cli/progress.h"
#include "cli/render.h"
#include "cli/report_json.h"
#include "cli/terminal.h"
#include "cli/text_io.h"
#include "cli/units.h"

namespace bulkhead::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kRedrawAfter{200};

// Spares beyond the jobs: one is started while the others are in use.
constexpr std::size_t kSparesBeyondJobs = 1;

microseconds Since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - start);
}

class Repetition {
 public:
  Repetition(const RepeatContext& context, const RepeatPlan& plan)
      : context_(context), plan_(plan), start_(std::chrono::steady_clock::now()) {}

  RepeatResult Run() {
    // Without spares the runs start cold: slower, nothing else.
    (void)KeepWarm(context_.runtime, context_.request, plan_.jobs + kSparesBeyondJobs);
    std::vector<std::thread> jobs;
    for (std::uint32_t i = 0; i < plan_.jobs; ++i) {
      try {
        jobs.emplace_back([this] { Work(); });
      } catch (const std::system_error&) {
        break;  // with as many as there are
      }
    }
    if (jobs.empty()) {
      Work();
    }
    ShowProgress(jobs.size());
    for (std::thread& job : jobs) {
      job.join();
    }
    (void)KeepWarm(context_.runtime, context_.request, 0);
    result_.elapsed = Since(start_);
    result_.unstarted = plan_.runs - started_;
    std::sort(result_.times.begin(), result_.times.end());
    return std::move(result_);
  }

 private:
  void Work() {
    while (TakeSlot()) {
      RunRequest request = context_.request;
      const UniqueFd input = Reopened(request.stdin_from);
      if (plan_.jobs > 1) {
        KeepOutput(request.stdout_to);
        KeepOutput(request.stderr_to);
      }
      RunRecord record = context_.record;
      record.report = RunModule(context_.runtime, context_.module, request);
      record.signal = context_.interrupts.first_signal();
      record.exit_status = ExitStatusOf(record.report.outcome, record.signal);
      Take(record);
    }
    const std::lock_guard lock(mutex_);
    ++ended_jobs_;
    changed_.notify_all();
  }

  bool TakeSlot() {
    const std::lock_guard lock(mutex_);
    if (started_ == plan_.runs || context_.interrupts.first_signal() != 0) {
      return false;
    }
    ++started_;
    return true;
  }

  // Each run reads from the start. Without a new description the runs share what there is.
  static UniqueFd Reopened(GuestStream& stream) {
    if (stream.kind != GuestStream::Kind::kDescriptor) {
      return {};
    }
    UniqueFd file(
        open(fmt::format("/proc/self/fd/{}", stream.descriptor).c_str(), O_RDONLY | O_CLOEXEC));
    if (file.valid()) {
      stream.descriptor = file.get();
    }
    return file;
  }

  static void KeepOutput(GuestStream& stream) {
    if (stream.kind == GuestStream::Kind::kDescriptor) {
      stream = GuestStream::Capture(kOutputKeptMax);
    }
  }

  void Take(const RunRecord& record) {
    const RunReport& report = record.report;
    const std::lock_guard lock(mutex_);
    if (plan_.jobs > 1) {
      (void)WriteAll(BorrowedFd(STDOUT_FILENO), report.stdout_captured);
      (void)WriteAll(BorrowedFd(STDERR_FILENO), report.stderr_captured);
    }
    ++result_.codes[report.outcome.CodeText()];
    result_.times.push_back(report.elapsed);
    result_.warm += report.warm_worker ? 1 : 0;
    if (record.exit_status != kExitOk && result_.exit_status == kExitOk) {
      result_.exit_status = record.exit_status;
      result_.first_problem = report.diagnostic;
    }
    if (plan_.keep_reports) {
      result_.reports += RunReportLine(record);
    }
  }

  void ShowProgress(std::size_t jobs) {
    std::unique_lock lock(mutex_);
    const auto ended = [&] { return ended_jobs_ >= jobs; };
    if (!plan_.terminal.valid()) {
      changed_.wait(lock, ended);
      return;
    }
    bool drawn = false;
    while (!changed_.wait_for(lock, kRedrawAfter, ended)) {
      const std::string text = ProgressText();
      lock.unlock();
      DrawBelow(plan_.terminal, text);
      drawn = true;
      lock.lock();
    }
    if (drawn) {
      EraseBelow(plan_.terminal);
    }
  }

  // Under the lock.
  std::string ProgressText() const {
    constexpr std::size_t kBarColumns = 20;
    const std::uint64_t done = result_.times.size();
    const double seconds = std::chrono::duration<double>(Since(start_)).count();
    const double rate = static_cast<double>(done) / seconds;
    const std::size_t filled = kBarColumns * done / plan_.runs;
    std::string text = fmt::format("[{}{}] {}/{} {:.0f} runs/s", std::string(filled, '#'),
                                   std::string(kBarColumns - filled, '.'), done, plan_.runs, rate);
    if (done != 0) {
      const auto left = static_cast<double>(plan_.runs - done) / rate;
      text += fmt::format(", {} left",
                          FormatDuration(microseconds(static_cast<std::int64_t>(left * 1e6))));
    }
    return text;
  }

  const RepeatContext& context_;
  const RepeatPlan& plan_;
  const std::chrono::steady_clock::time_point start_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::uint64_t started_ = 0;
  std::size_t ended_jobs_ = 0;
  RepeatResult result_;
};

std::string Milliseconds(microseconds time) {
  return fmt::format("{:.2f}", std::chrono::duration<double, std::milli>(time).count());
}

}  // namespace

RepeatResult RunRepeatedly(const RepeatContext& context, const RepeatPlan& plan) {
  return Repetition(context, plan).Run();
}

microseconds Percentile(const std::vector<microseconds>& sorted, double percent) {
  if (sorted.empty()) {
    return microseconds(0);
  }
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

std::string RenderRepeat(const RepeatResult& result, const RepeatPlan& plan) {
  std::string ends;
  for (const auto& [code, count] : result.codes) {
    ends += fmt::format("{}{} {}", ends.empty() ? "" : ", ", count, code);
  }
  std::string text =
      fmt::format("bulkhead: {} runs in {}, {} at a time: {}\n", result.times.size(),
                  FormatDuration(result.elapsed), plan.jobs, ends.empty() ? "none started" : ends);
  if (result.unstarted != 0) {
    text += fmt::format("bulkhead: {} runs were not started\n", result.unstarted);
  }
  if (!result.times.empty()) {
    const double seconds = std::chrono::duration<double>(result.elapsed).count();
    text += fmt::format(
        "bulkhead: each took {} ms (median; 90 %: {}, 99 %: {}, longest: {}), {:.0f} runs/s, {} on "
        "spare workers\n",
        Milliseconds(Percentile(result.times, 50)), Milliseconds(Percentile(result.times, 90)),
        Milliseconds(Percentile(result.times, 99)), Milliseconds(result.times.back()),
        static_cast<double>(result.times.size()) / seconds, result.warm);
  }
  if (!result.first_problem.empty()) {
    text += fmt::format("bulkhead: the first that failed: {}\n", OneLine(result.first_problem));
  }
  return text;
}

}  // namespace bulkhead::cli
