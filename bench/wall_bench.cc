// What the wall costs: full runs with cached code in the default sandbox, cold and from spare
// workers, against bubblewrap, against no sandbox and against bare processes. Prints lines as
// run_bench does, and where the time goes.
// usage: wall_bench [NAME...]     names: cold warm rate kill deadline idle heap
#include <bulkhead/code_cache.h>
#include <bulkhead/run.h>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "baselines.h"
#include "report.h"
#include "support/busy_guests.h"

namespace {

using namespace std::chrono_literals;
using bulkhead::AdmittedModule;
using bulkhead::RunReport;
using bulkhead::RunRequest;
using bulkhead::Stage;
using bulkhead::bench::Compare;
using bulkhead::bench::Comparison;
using bulkhead::bench::Line;
using bulkhead::bench::Ms;
using bulkhead::bench::Must;
using bulkhead::bench::Repeat;
using bulkhead::bench::Series;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 200;

constexpr std::string_view kTrivial =
    "(module (memory (export \"memory\") 1) (func (export \"_start\")))";
// Touches 64 MiB and spins.
constexpr std::string_view kTouch = R"((module (memory (export "memory") 1025)
  (func (export "_start") (local $i i32)
    (loop $touch
      (i32.store (local.get $i) (i32.const 1))
      (br_if $touch
        (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4096))) (i32.const 67108864))))
    (loop (br 0)))))";

double MsSince(Clock::time_point start) {
  return Ms(Clock::now() - start).count();
}

// Of the process, in bytes; of memory that it shares with nobody.
std::uint64_t PrivateBytes(const std::string& pid) {
  std::ifstream smaps("/proc/" + pid + "/smaps_rollup");
  std::uint64_t kib = 0;
  for (std::string line; std::getline(smaps, line);) {
    if (line.starts_with("Private_")) {
      kib += std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return kib << 10;
}

std::vector<std::string> WorkerPids() {
  std::vector<std::string> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    std::string program;
    std::getline(file, program, '\0');
    if (program.ends_with(bulkhead::kWasmWorkerName)) {
      pids.push_back(entry.path().filename());
    }
  }
  return pids;
}

class Bench {
 public:
  Bench() {
    if (mkdtemp(cache_directory_.data()) == nullptr) {
      std::perror("mkdtemp");
      std::exit(1);
    }
    bulkhead::RuntimeOptions options;
    options.active_runs_max = 8;
    options.code_cache = Must(bulkhead::CodeCache::Open({.directory = cache_directory_}));
    runtime_ = Must(bulkhead::Runtime::Create(options));
    request_.worker.executable = Must(bulkhead::FindWorker(bulkhead::kWasmWorkerName));
  }

  ~Bench() {
    runtime_.reset();
    std::filesystem::remove_all(cache_directory_);
  }

  void Cold();
  void Warm();
  void Rate();
  void Kill();
  void Deadline();
  void Idle();
  void Heap();

 private:
  AdmittedModule Module(std::string_view text) {
    auto source = Must(bulkhead::ModuleSource::FromBytes(
        {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 1 << 20));
    return Must(Must(bulkhead::ConvertText(*runtime_, source, request_)).Admit({}));
  }

  // With its code in the cache.
  AdmittedModule Trivial() {
    const AdmittedModule module = Module(kTrivial);
    Run(module, request_);
    return module;
  }

  RunReport Run(const AdmittedModule& module, const RunRequest& request) {
    RunReport report = bulkhead::RunModule(*runtime_, module, request);
    if (!report.outcome.completed()) {
      std::fprintf(stderr, "wall_bench: %s: %s\n", report.outcome.CodeText().c_str(),
                   report.diagnostic.c_str());
      std::exit(1);
    }
    return report;
  }

  double RunMs(const AdmittedModule& module, const RunRequest& request) {
    const auto start = Clock::now();
    Run(module, request);
    return MsSince(start);
  }

  void AwaitSpares(std::uint64_t count) {
    const auto patience = Clock::now() + 20s;
    while (runtime_->snapshot().warm.idle < count) {
      if (Clock::now() > patience) {
        std::fprintf(stderr, "wall_bench: no spare worker: %s\n",
                     runtime_->snapshot().warm.problem.c_str());
        std::exit(1);
      }
      std::this_thread::sleep_for(200us);
    }
  }

  void Stages(const char* title, const std::vector<RunReport>& reports) const;
  double RunsPerSecond(const AdmittedModule& module, const RunRequest& request, int concurrent);

  std::string cache_directory_ = "/tmp/bulkhead-bench-XXXXXX";
  std::unique_ptr<bulkhead::Runtime> runtime_;
  RunRequest request_;
};

void Bench::Stages(const char* title, const std::vector<RunReport>& reports) const {
  std::printf("  %-36s", title);
  for (const Stage stage : {Stage::kAdmit, Stage::kLaunch, Stage::kHandshake, Stage::kHandOver,
                            Stage::kCompile, Stage::kExecute, Stage::kReap, Stage::kPublish}) {
    std::vector<double> values;
    values.reserve(reports.size());
    for (const RunReport& report : reports) {
      values.push_back(Ms(report.durations[static_cast<std::size_t>(stage)]).count());
    }
    std::sort(values.begin(), values.end());
    std::printf(" %s %.2f", std::string(StageName(stage)).c_str(), values[values.size() / 2]);
  }
  std::printf(" ms (medians)\n");
}

void Bench::Cold() {
  const AdmittedModule module = Trivial();
  RunRequest bare = request_;
  bare.worker.sandbox = bulkhead::SandboxLevel::kNone;
  std::vector<RunReport> reports;
  const auto run = [&] {
    const auto start = Clock::now();
    reports.push_back(Run(module, request_));
    return MsSince(start);
  };
  Comparison pair =
      Compare(kRounds, run, [] { return bulkhead::bench::SpawnAndReap({"/bin/true"}); });
  Line("full run, default sandbox", pair.figure, "ms", pair.baseline, "spawn+reap of /bin/true",
       "half of the original's 9.8 ms (4.9), aim a third (3.3)");
  Stages("where it goes", reports);
  pair = Compare(kRounds, run, [&] { return RunMs(module, bare); });
  Line("the same against --sandbox none", pair.figure, "ms", pair.baseline, "--sandbox none", "");
  const std::vector<std::string> bubblewrap = {"/usr/bin/bwrap", "--ro-bind", "/", "/",
                                               "--unshare-all",  "/bin/true"};
  if (std::filesystem::exists(bubblewrap[0])) {
    pair = Compare(kRounds, run, [&] { return bulkhead::bench::SpawnAndReap(bubblewrap); });
    Line("the same against bubblewrap", pair.figure, "ms", pair.baseline, "bwrap around true",
         fmt::format("at most 1.5 ms above it: {:+.2f} ms", pair.figure - pair.baseline).c_str());
  } else {
    std::puts("bubblewrap is not installed: not compared");
  }
}

void Bench::Warm() {
  const AdmittedModule module = Trivial();
  Must(KeepWarm(*runtime_, request_, 2));
  std::vector<RunReport> reports;
  std::vector<double> terminal;
  const Series result = Repeat(kRounds, [&] {
    AwaitSpares(2);
    const auto start = Clock::now();
    reports.push_back(Run(module, request_));
    const double ms = MsSince(start);
    const auto& durations = reports.back().durations;
    terminal.push_back(ms - Ms(durations[static_cast<std::size_t>(Stage::kReap)] +
                               durations[static_cast<std::size_t>(Stage::kPublish)])
                                .count());
    return ms;
  });
  const auto cold = std::count_if(reports.begin(), reports.end(),
                                  [](const RunReport& report) { return !report.warm_worker; });
  std::sort(terminal.begin(), terminal.end());
  Line("warm run, to the Terminal", terminal[terminal.size() / 2], "ms", 0, "", "at most 1 ms");
  Line("warm run, to the result", result.median, "ms", 0, "",
       fmt::format("at most 2 ms; p95 {:.2f}, {} of {} started cold", result.p95, cold, kRounds)
           .c_str());
  Stages("where it goes", reports);
  Must(KeepWarm(*runtime_, request_, 0));
}

double Bench::RunsPerSecond(const AdmittedModule& module, const RunRequest& request,
                            int concurrent) {
  constexpr auto kTime = 3s;
  std::atomic<int> runs{0};
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(concurrent));
  for (int i = 0; i < concurrent; ++i) {
    threads.emplace_back([&] {
      while (Clock::now() - start < kTime) {
        Run(module, request);
        ++runs;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return runs / (MsSince(start) / 1000);
}

void Bench::Rate() {
  // Of the original on a quiet machine, uncontained.
  constexpr std::array kOriginal = {std::pair{1, 94.0}, std::pair{2, 144.5}, std::pair{4, 209.4}};
  const AdmittedModule module = Trivial();
  RunRequest bare = request_;
  bare.worker.sandbox = bulkhead::SandboxLevel::kNone;
  for (const auto& [concurrent, original] : kOriginal) {
    const double contained = RunsPerSecond(module, request_, concurrent);
    const double uncontained = RunsPerSecond(module, bare, concurrent);
    Line(fmt::format("runs by {} at once", concurrent), contained, "/s", uncontained,
         "--sandbox none",
         fmt::format("{:.2f} of the original's {:.0f} (1.5); without a sandbox {:.2f} (aim 2)",
                     contained / original, original, uncontained / original)
             .c_str());
  }
}

void Bench::Kill() {
  const AdmittedModule module = Module(kTouch);
  RunRequest request = request_;
  request.limits.cooperative_stop = false;  // a stop is a kill
  request.limits.deadline = 250ms;
  std::vector<double> clean;
  for (int i = 0; i < 100; ++i) {
    const RunReport report = RunModule(*runtime_, module, request);
    clean.push_back(Ms(report.durations[static_cast<std::size_t>(Stage::kStop)] +
                       report.durations[static_cast<std::size_t>(Stage::kReap)])
                        .count());
    if (report.outcome.code != bulkhead::OutcomeCode::kForcedContainmentDeadlineExceeded) {
      std::fprintf(stderr, "wall_bench: %s\n", report.outcome.CodeText().c_str());
      std::exit(1);
    }
  }
  std::sort(clean.begin(), clean.end());
  Line("kill to clean, 64 MiB touched", clean[clean.size() / 2], "ms", 0, "",
       fmt::format("p99 at most 50 ms: {:.2f}", clean[98]).c_str());
}

// How long after its deadline, and its grace if that was needed, a run's worker is gone. What the
// guest wrote may then still be on its way to a slow reader, for kDeliverMax at most, and a deaf
// one takes all of that.
void Bench::Deadline() {
  constexpr int kRuns = 40;
  RunRequest request = request_;
  request.limits.deadline = 100ms;
  request.limits.threads_max = 64;
  request.worker.grace = 50ms;
  std::array<int, 2> deaf{};
  if (pipe2(deaf.data(), O_CLOEXEC) != 0) {
    std::abort();
  }
  const bulkhead::UniqueFd reader(deaf[0]);
  const bulkhead::UniqueFd writer(deaf[1]);
  for (const bulkhead::test::BusyGuest& guest : bulkhead::test::BusyGuests()) {
    if (guest.stop_worker) {
      continue;  // needs an observer; the test of the deadlines has it
    }
    const AdmittedModule module = Module(guest.text);
    request.stdout_to = guest.deaf_stdout ? bulkhead::GuestStream::Descriptor(writer.get())
                                          : bulkhead::GuestStream::None();
    std::vector<double> late;
    for (int i = 0; i < kRuns; ++i) {
      const RunReport report = RunModule(*runtime_, module, request);
      const bool forced =
          report.outcome.code == bulkhead::OutcomeCode::kForcedContainmentDeadlineExceeded;
      if (!forced && report.outcome.code != bulkhead::OutcomeCode::kDeadlineExceeded) {
        std::fprintf(stderr, "wall_bench: %s\n", report.outcome.CodeText().c_str());
        std::exit(1);
      }
      const auto delivering = guest.deaf_stdout ? 1s : 0s;
      late.push_back(Ms(report.elapsed - request.limits.deadline - delivering).count() -
                     (forced ? 50 : 0));
    }
    std::sort(late.begin(), late.end());
    Line(fmt::format("late: {}", guest.name), late[kRuns / 2], "ms", 0, "",
         fmt::format("p99 at most 50 ms, max 200: max of {} {:.1f}", kRuns, late.back()).c_str());
  }
}

void Bench::Idle() {
  constexpr std::uint64_t kSpares = 4;
  const auto before = WorkerPids();
  Must(KeepWarm(*runtime_, request_, kSpares));
  AwaitSpares(kSpares);
  std::uint64_t bytes = 0;
  int counted = 0;
  for (const std::string& pid : WorkerPids()) {
    if (std::find(before.begin(), before.end(), pid) == before.end()) {
      bytes += PrivateBytes(pid);
      ++counted;
    }
  }
  Line("private memory of an idle spare", static_cast<double>(bytes) / counted / (1 << 20), "MiB",
       0, "", "at most 6 MiB");
  Must(KeepWarm(*runtime_, request_, 0));
}

void Bench::Heap() {
  const AdmittedModule module = Trivial();
  const Series small = Repeat(60, [&] { return RunMs(module, request_); });
  std::vector<char> heap(2ULL << 30, 1);
  const Series large = Repeat(60, [&] { return RunMs(module, request_); });
  Line("full run from a 2 GiB host", large.median, "ms", small.median, "the same from a small host",
       "unchanged: 0.8 to 1.2");
  heap.clear();
}

}  // namespace

int main(int argc, char** argv) {
  struct Part {
    std::string_view name;
    void (Bench::*run)();
  };

  constexpr std::array kParts = {Part{"cold", &Bench::Cold},         Part{"warm", &Bench::Warm},
                                 Part{"rate", &Bench::Rate},         Part{"kill", &Bench::Kill},
                                 Part{"deadline", &Bench::Deadline}, Part{"idle", &Bench::Idle},
                                 Part{"heap", &Bench::Heap}};
  Bench bench;
  for (const Part& part : kParts) {
    bool chosen = argc < 2;
    for (int i = 1; i < argc; ++i) {
      chosen = chosen || part.name == argv[i];
    }
    if (chosen) {
      (bench.*part.run)();
    }
  }
}
