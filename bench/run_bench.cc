// One-shot runs against what the machine itself charges. Prints one line per bar:
//   name | figure | baseline in the same run | ratio | bar
// usage: run_bench [NAME...]     names: trivial idle stop kill heap memory stdout hand-over code
// Without a cache of compiled code but where a name says so: every run compiles for itself.
#include <bulkhead/code_cache.h>
#include <bulkhead/run.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "baselines.h"
#include "report.h"

namespace {

using namespace std::chrono_literals;
using bulkhead::AdmittedModule;
using bulkhead::RunReport;
using bulkhead::RunRequest;
using bulkhead::bench::Line;
using bulkhead::bench::Ms;
using bulkhead::bench::Must;
using bulkhead::bench::Repeat;
using bulkhead::bench::Series;

constexpr std::string_view kTrivial =
    "(module (memory (export \"memory\") 1) (func (export \"_start\")))";
constexpr std::string_view kSpin =
    "(module (memory (export \"memory\") 1) (func (export \"_start\") (loop (br 0))))";
// Sleeps for ever in one poll_oneoff.
constexpr std::string_view kSleep = R"((module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 3600000000000))
    (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128))))))";
// Writes 64 KiB blocks for ever-decreasing $n: 4096 blocks are 256 MiB.
constexpr std::string_view kFlood = R"((module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 3)
  (func (export "_start") (local $n i32)
    (local.set $n (i32.const 4096))
    (i32.store (i32.const 0) (i32.const 65536))
    (i32.store (i32.const 4) (i32.const 65536))
    (loop $again
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))))";
constexpr std::uint64_t kFloodBytes = 4096ULL << 16;

// Tells when a guest began to run, and in which process.
class ExecutingWorker final : public bulkhead::Observer {
 public:
  void OnStage(const bulkhead::RunEvent& event) override {
    if (event.stage == bulkhead::Stage::kExecute) {
      const std::lock_guard lock(mutex_);
      pid_ = event.worker_pid;
      changed_.notify_all();
    }
  }

  // The pid of the next worker that executes.
  int Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return pid_ != 0; });
    return std::exchange(pid_, 0);
  }

  void Forget() {
    const std::lock_guard lock(mutex_);
    pid_ = 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int pid_ = 0;
};

class Bench {
 public:
  Bench() : runtime_(Must(bulkhead::Runtime::Create({.observer = &executing_}))) {
    request_.worker.executable = Must(bulkhead::FindWorker(bulkhead::kWasmWorkerName));
  }

  void Trivial();
  void Idle();
  void Stop();
  void Kill();
  void Heap();
  void Memory();
  void Stdout();
  void HandOver();
  void Code();

 private:
  AdmittedModule Module(std::string_view text) {
    auto source = Must(bulkhead::ModuleSource::FromBytes(
        {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 1 << 20));
    return Must(Must(bulkhead::ConvertText(*runtime_, source, request_)).Admit({}));
  }

  RunReport Run(const AdmittedModule& module, bulkhead::OutcomeCode expected) {
    return Run(*runtime_, module, expected);
  }

  RunReport Run(bulkhead::Runtime& runtime, const AdmittedModule& module,
                bulkhead::OutcomeCode expected) {
    RunReport report = bulkhead::RunModule(runtime, module, request_);
    if (report.outcome.code != expected) {
      std::fprintf(stderr, "run_bench: %s: %s\n", report.outcome.CodeText().c_str(),
                   report.diagnostic.c_str());
      std::exit(1);
    }
    return report;
  }

  double TrivialRunMs(const AdmittedModule& module) {
    return Ms(Run(module, bulkhead::OutcomeCode::kWorkerCompleted).elapsed).count();
  }

  ExecutingWorker executing_;
  std::unique_ptr<bulkhead::Runtime> runtime_;
  RunRequest request_;
};

void Bench::Trivial() {
  const AdmittedModule module = Module(kTrivial);
  const Series run = Repeat(200, [&] { return TrivialRunMs(module); });
  const Series floor = Repeat(200, [&] { return bulkhead::bench::SpawnAndReap({"/bin/true"}); });
  Line("trivial module, cold worker", run.median, "ms", floor.median, "spawn+reap of /bin/true",
       "the original: 9.8 ms; at most 0.8 of it (7.8 ms), aim 4.9 ms");
}

void Bench::Idle() {
  for (const auto& [name, text] : {std::pair{"idle 2 s run, host sleep", kSleep},
                                   std::pair{"idle 2 s run, spinning", kSpin}}) {
    const AdmittedModule module = Module(text);
    request_.limits.deadline = 2s;
    const auto before = bulkhead::bench::ReadSelfUse();
    Run(module, bulkhead::OutcomeCode::kDeadlineExceeded);
    const auto after = bulkhead::bench::ReadSelfUse();
    Line(name, after.cpu_ms - before.cpu_ms, "ms", 0, "", "supervisor CPU below 2 ms");
    Line(name, static_cast<double>(after.wake_ups - before.wake_ups), "wakes", 0, "",
         "below 20 wake-ups");
  }
  request_.limits.deadline = 30s;
}

void Bench::Stop() {
  const AdmittedModule spin = Module(kSpin);
  request_.limits.deadline = 100ms;
  const Series late = Repeat(40, [&] {
    return Ms(Run(spin, bulkhead::OutcomeCode::kDeadlineExceeded).elapsed).count() - 100;
  });
  request_.limits.deadline = 30s;
  Line("deadline overshoot, spinning", late.median, "ms", 0, "",
       "at most 3 ms median (original 7.7)");
  const AdmittedModule sleep = Module(kSleep);
  for (const auto& [name, module] : {std::pair{"cancel to result, spinning", &spin},
                                     std::pair{"cancel to result, host sleep", &sleep}}) {
    const Series cancel = Repeat(40, [&] {
      const auto source = Must(bulkhead::CancelSource::Create());
      executing_.Forget();
      RunRequest request = request_;
      request.cancel = source.token();
      auto run = Must(bulkhead::StartRun(*runtime_, *module, std::move(request)));
      executing_.Wait();
      const auto start = std::chrono::steady_clock::now();
      source.Cancel();
      const RunReport report = run.Wait();
      return report.outcome.code == bulkhead::OutcomeCode::kCancelled
                 ? Ms(std::chrono::steady_clock::now() - start).count()
                 : 1e9;
    });
    Line(name, cancel.median, "ms", 0, "", "at most 3 ms median (original 6.3-7.4)");
  }
}

void Bench::Kill() {
  const AdmittedModule spin = Module(kSpin);
  request_.limits.cooperative_stop = false;  // a stop is a kill
  request_.limits.deadline = 100ms;
  const Series kill = Repeat(40, [&] {
    const RunReport report = Run(spin, bulkhead::OutcomeCode::kForcedContainmentDeadlineExceeded);
    return Ms(report.durations[static_cast<std::size_t>(bulkhead::Stage::kReap)]).count();
  });
  request_.limits.cooperative_stop = true;
  request_.limits.deadline = 30s;
  // The same worker in the same state, killed by nothing but a signal.
  const Series bare = Repeat(40, [&] {
    executing_.Forget();
    auto run = Must(bulkhead::StartRun(*runtime_, spin, request_));
    const int pid = executing_.Wait();
    const double ms = bulkhead::bench::KillToExit(pid);
    const RunReport report = run.Wait();
    return report.outcome.code == bulkhead::OutcomeCode::kWorkerUnexpectedExit ? ms : 1e9;
  });
  Line("kill to reaped, spinning", kill.median, "ms", bare.median, "bare kill of the same worker",
       "at most 1.5 of a bare kill");
}

void Bench::Heap() {
  const AdmittedModule module = Module(kTrivial);
  const Series small = Repeat(60, [&] { return TrivialRunMs(module); });
  std::vector<char> heap(1ULL << 30, 1);
  const Series large = Repeat(60, [&] { return TrivialRunMs(module); });
  Line("trivial run from a 1 GiB host", large.median, "ms", small.median,
       "the same from a small host", "0.8 to 1.2 (original: 31 ms, 3.1)");
  heap.clear();
}

void Bench::Memory() {
  const AdmittedModule module = Module(kTrivial);
  Repeat(50, [&] { return TrivialRunMs(module); });
  const auto before = bulkhead::bench::ReadSelfUse().rss_bytes;
  Repeat(1000, [&] { return TrivialRunMs(module); });
  const auto after = bulkhead::bench::ReadSelfUse().rss_bytes;
  Line("parent memory after 1,000 runs", static_cast<double>(after) / 1024, "KiB",
       static_cast<double>(before) / 1024, "after 50 runs", "flat");
}

void Bench::Stdout() {
  const AdmittedModule module = Module(kFlood);
  const auto measure = [&] {
    std::array<int, 2> fds{};
    if (pipe2(fds.data(), O_CLOEXEC) != 0) {
      std::abort();
    }
    bulkhead::UniqueFd reader(fds[0]);
    bulkhead::UniqueFd writer(fds[1]);
    RunRequest request = request_;
    request.stdout_to = bulkhead::GuestStream::Descriptor(writer.get());
    auto run = Must(bulkhead::StartRun(*runtime_, module, std::move(request)));
    std::array<char, 65536> buffer;
    std::uint64_t received = 0;
    std::chrono::steady_clock::time_point first{};
    while (received < kFloodBytes) {
      const ssize_t got = read(reader.get(), buffer.data(), buffer.size());
      first = received == 0 ? std::chrono::steady_clock::now() : first;
      received += static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
    }
    const double ms = Ms(std::chrono::steady_clock::now() - first).count();
    run.Wait();
    return static_cast<double>(received) / (1 << 20) / (ms / 1000);
  };
  const Series guest = Repeat(5, measure);
  const Series bare = Repeat(5, [] { return bulkhead::bench::TwoPipeRelay(kFloodBytes); });
  Line("guest stdout", guest.median, "MiB/s", bare.median, "bare two-pipe relay", "at least 0.5");
}

void Bench::HandOver() {
  // 30 MiB of data segment around a trivial start: what is measured is moving the module, not
  // compiling it.
  std::string text =
      "(module (memory (export \"memory\") 500) (func (export \"_start\")) (data (i32.const 0) \"";
  text += std::string(30 << 20, 'x') + "\"))";
  auto source = Must(bulkhead::ModuleSource::FromBytes(
      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 64 << 20));
  const AdmittedModule module =
      Must(Must(bulkhead::ConvertText(*runtime_, source, request_)).Admit({}));
  const Series hand_over = Repeat(10, [&] {
    const RunReport report = Run(module, bulkhead::OutcomeCode::kWorkerCompleted);
    return Ms(report.durations[static_cast<std::size_t>(bulkhead::Stage::kHandOver)]).count();
  });
  Line("hand-over of a 30 MiB module", hand_over.median, "ms", 0, "", "original: 60-100 ms");
}

// About 350 KiB of code in 764 functions of some arithmetic each.
std::string ManyFunctions() {
  std::string text = "(module (memory 1) (func (export \"_start\"))";
  for (int i = 0; i < 764; ++i) {
    const std::string number = std::to_string(i + 3);
    text += "(func (param i32 i32) (result i32) (local i32)";
    for (int k = 0; k < 14; ++k) {
      text += "(local.set 2 (i32.add (i32.mul (local.get 0) (i32.const " + number +
              ")) (i32.xor (local.get 1) (i32.load offset=" + std::to_string(8 * k) +
              " (local.get 2)))))(if (i32.gt_u (local.get 2) (i32.const " + number +
              ")) (then (i32.store (local.get 1) (local.get 2))))";
    }
    text += "(local.get 2))";
  }
  return text + ")";
}

// What a cache saves: the second run of a module, against compiling in each run.
void Bench::Code() {
  const std::string text = ManyFunctions();
  auto source = Must(bulkhead::ModuleSource::FromBytes(
      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 64 << 20));
  const AdmittedModule module =
      Must(Must(bulkhead::ConvertText(*runtime_, source, request_)).Admit({}));
  std::string directory = "/tmp/bulkhead-bench-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) {
    std::abort();
  }
  bulkhead::RuntimeOptions options;
  options.code_cache = Must(bulkhead::CodeCache::Open({.directory = directory}));
  const auto runtime = Must(bulkhead::Runtime::Create(options));
  const auto milliseconds = [](const RunReport& report) { return Ms(report.elapsed).count(); };
  const auto completed = bulkhead::OutcomeCode::kWorkerCompleted;
  const Series first = Repeat(20, [&] {
    Must(options.code_cache->Prune(0));
    return milliseconds(Run(*runtime, module, completed));
  });
  const Series second = Repeat(60, [&] { return milliseconds(Run(*runtime, module, completed)); });
  const Series off = Repeat(20, [&] { return milliseconds(Run(module, completed)); });
  const auto stat = Must(options.code_cache->Stat());
  const std::string name =
      "second run of " + std::to_string(module.size_bytes() >> 10) + " KiB of code";
  Line(name, second.median, "ms", off.median, "--cache off",
       "1/50 of the original's 360 ms (7.2 ms)");
  Line("first run, compiled and stored", first.median, "ms", off.median, "--cache off", "");
  const Series verify = Repeat(60, [&] {
    const auto start = std::chrono::steady_clock::now();
    Must(options.code_cache->Verify());
    return Ms(std::chrono::steady_clock::now() - start).count();
  });
  Line("check of the entry, per MiB", verify.median / (static_cast<double>(stat.bytes) / (1 << 20)),
       "ms", 0, "", "");
  std::filesystem::remove_all(directory);
}

}  // namespace

int main(int argc, char** argv) {
  struct Part {
    std::string_view name;
    void (Bench::*run)();
  };

  constexpr std::array kParts = {
      Part{"trivial", &Bench::Trivial}, Part{"idle", &Bench::Idle},
      Part{"stop", &Bench::Stop},       Part{"kill", &Bench::Kill},
      Part{"heap", &Bench::Heap},       Part{"memory", &Bench::Memory},
      Part{"stdout", &Bench::Stdout},   Part{"hand-over", &Bench::HandOver},
      Part{"code", &Bench::Code}};
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
