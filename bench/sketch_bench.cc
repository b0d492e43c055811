// What sketches and guests with threads cost. Prints one line per bar, as run_bench does.
// usage: sketch_bench [NAME...]     names: blob poll wake spawn metering scaling
#include <bulkhead/run.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bare_engine.h"
#include "baselines.h"
#include "report.h"
#include "support/sketch_module.h"

namespace {

using bulkhead::AdmittedModule;
using bulkhead::ModuleSource;
using bulkhead::RunReport;
using bulkhead::RunRequest;
using bulkhead::bench::BareCpuMs;
using bulkhead::bench::BareElapsedMs;
using bulkhead::bench::Compare;
using bulkhead::bench::Comparison;
using bulkhead::bench::InOwnSession;
using bulkhead::bench::Ms;
using bulkhead::bench::Must;
using bulkhead::bench::Repeat;
using bulkhead::test::SketchParts;

constexpr int kRounds = 9;
// Of what is compared with its like: enough for a median to hold still on a machine that also does
// other things.
constexpr int kComparedRounds = 25;

// $n calls of `body`.
std::string Times(long n, std::string_view body) {
  return fmt::format(
      "(local.set $i (i32.const {})) (loop $again {} "
      "(br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))",
      n, body);
}

// A module of profile wasi-threads that imports nothing else: $spawn starts a thread.
struct ThreadedParts {
  std::string start = {};   // of _start; a local $i
  std::string thread = {};  // of wasi_thread_start
  std::string extra = {};   // fields anywhere in the module
};

std::string ThreadedText(const ThreadedParts& parts) {
  return fmt::format(
      R"((module
        (import "env" "memory" (memory 1 16 shared))
        (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
        (func (export "_start") (local $i i32) {})
        (func (export "wasi_thread_start") (param $id i32) (param $argument i32) {})
        {}))",
      parts.start, parts.thread, parts.extra);
}

// Rounds of the work below: some hundred milliseconds, so that starts of threads do not count.
constexpr long kIterations = 100'000'000;

// Four bytes of a data segment.
std::string DataWord(long value) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes += fmt::format("\\{:02x}", (static_cast<unsigned long>(value) >> shift) & 0xFF);
  }
  return bytes;
}

// What is computed here and in the guest: every step waits for the one before.
constexpr std::string_view kWork = R"(
    (func $work (param $n i32) (result i32) (local $x i32)
      (local.set $x (i32.const 1))
      (loop $again
        (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 1664525)) (i32.const 1013904223)))
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $x)))";

unsigned NativeWork(long n) {
  unsigned x = 1;
  for (; n > 0; --n) {
    x = x * 1664525U + 1013904223U;
    __asm__ volatile("" : "+r"(x));  // one by one, as the guest has to
  }
  return x;
}

class Bench {
 public:
  Bench() : runtime_(Must(bulkhead::Runtime::Create({}))) {
    request_.worker.executable = Must(bulkhead::FindWorker(bulkhead::kWasmWorkerName));
    request_.limits.fuel = 1'000'000'000'000'000;
    request_.limits.deadline = std::chrono::minutes(2);
  }

  void Blob();
  void Poll();
  void Wake();
  void Spawn();
  void Metering();
  void Scaling();

 private:
  std::vector<std::uint8_t> Assemble(const std::string& text) {
    const ModuleSource source = Must(ModuleSource::FromBytes(
        {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 1 << 20));
    const ModuleSource binary = Must(bulkhead::ConvertText(*runtime_, source, request_));
    return {binary.bytes().begin(), binary.bytes().end()};
  }

  static AdmittedModule Admit(const std::vector<std::uint8_t>& bytes) {
    return Must(Must(ModuleSource::FromBytes(bytes, 1 << 20)).Admit({}));
  }

  AdmittedModule Module(const SketchParts& parts) {
    std::vector<std::uint8_t> bytes = Assemble(bulkhead::test::SketchText(parts));
    const std::string sections = bulkhead::test::SketchSections();
    bytes.insert(bytes.end(), sections.begin(), sections.end());
    return Admit(bytes);
  }

  RunReport Run(const AdmittedModule& module) {
    RunReport report = bulkhead::RunModule(*runtime_, module, request_);
    if (!report.outcome.completed()) {
      std::fprintf(stderr, "sketch_bench: %s: %s\n", report.outcome.CodeText().c_str(),
                   report.diagnostic.c_str());
      std::exit(1);
    }
    return report;
  }

  // How long the guest ran, compiling not included.
  double ExecuteMs(const AdmittedModule& module) {
    return Ms(Run(module).durations[static_cast<std::size_t>(bulkhead::Stage::kExecute)]).count();
  }

  // Of the whole worker.
  double CpuMs(const AdmittedModule& module) { return Ms(Run(module).cpu).count(); }

  // What a worker of profile wasi-threads uses for a guest that does nothing.
  double CpuBeforeGuestMs() {
    const AdmittedModule empty = Admit(Assemble(ThreadedText({})));
    return Repeat(kComparedRounds, [&] { return CpuMs(empty); }).median;
  }

  std::unique_ptr<bulkhead::Runtime> runtime_;
  RunRequest request_;
};

void Bench::Blob() {
  // 1024 pairs of a write and a read of 64 KiB, each waited for and collected.
  const AdmittedModule module = Module(
      {.start =
           "(local $blob i64)"
           "(local.set $op (call $operation_submit (i32.const 5) (i64.const 0) (i64.const 0)))"
           "(drop (call $operation_yield (local.get $op)))"
           "(local.set $blob (i64.shr_u (call $operation_poll (local.get $op)) (i64.const 8)))" +
           Times(1024,
                 "(local.set $op (call $operation_submit (i32.const 6) (local.get $blob) "
                 "(i64.const 0x1000000001000)))"
                 "(if (i64.ne (call $operation_poll (local.get $op)) (i64.const 257)) "
                 "(then unreachable))"
                 "(local.set $op (call $operation_submit (i32.const 7) (local.get $blob) "
                 "(i64.const 65536)))"
                 "(if (i64.ne (call $operation_submit (i32.const 8) (local.get $op) "
                 "(i64.const 0x1000000020000)) (i64.const 0x1000001)) (then unreachable))"),
       .operations = true});
  std::printf("%-34s %9.2f ms    | below 500 ms (the original: 5,500 to 9,300 with compiling)\n",
              "64 MiB through one blob", Repeat(kRounds, [&] { return ExecuteMs(module); }).median);
}

void Bench::Poll() {
  constexpr long kCalls = 3'000'000;
  const AdmittedModule empty = Module({.start = Times(kCalls, "(call $kernel_yield)")});
  const AdmittedModule poll =
      Module({.start = "(local.set $op (call $operation_submit (i32.const 12) (i64.const 3600000) "
                       "(i64.const 0)))" +
                       Times(kCalls, "(drop (call $operation_poll (local.get $op)))"),
              .operations = true});
  const Comparison call = Compare(
      kComparedRounds, [&] { return ExecuteMs(poll) * 1e6 / kCalls; },
      [&] { return ExecuteMs(empty) * 1e6 / kCalls; });
  std::printf("%-34s %9.1f ns    | %9.1f ns of an empty host call    | ratio %.2f | at most 2\n",
              "operation_poll", call.figure, call.baseline, call.ratio);
}

void Bench::Wake() {
  // A sleep is what a guest can wait for that ends at a known time without its doing: the hub's
  // timer thread ends it and wakes the guest. The baseline has one wake-up, the guest two.
  static constexpr int kSleeps = 100;
  static constexpr auto kSleep = std::chrono::milliseconds(1);
  const AdmittedModule module = Module(
      {.start = Times(kSleeps, fmt::format("(local.set $op (call $operation_submit (i32.const 12) "
                                           "(i64.const {}) (i64.const 0)))"
                                           "(if (i32.ne (call $operation_yield (local.get $op)) "
                                           "(i32.const 1)) (then unreachable))"
                                           "(drop (call $operation_poll (local.get $op)))",
                                           kSleep.count())),
       .operations = true});
  const Comparison wake = Compare(
      kComparedRounds, [&] { return ExecuteMs(module) / kSleeps - Ms(kSleep).count(); },
      [] { return InOwnSession([] { return bulkhead::bench::Oversleep(kSleeps, kSleep); }); });
  std::printf("%-34s %9.3f ms    | %9.3f ms of a thread of the host  | ratio %.2f | below 1 ms\n",
              "operation_yield after a sleep", wake.figure, wake.baseline, wake.ratio);
}

void Bench::Spawn() {
  // From one call of thread-spawn to the next, each after the thread has told the first one that
  // it runs. The telling is the same on both sides. On a busy machine elapsed time is mostly
  // waiting for a processor; the second line is what both sides do themselves.
  constexpr int kThreads = 500;
  const std::vector<std::uint8_t> bytes = Assemble(ThreadedText(
      {.start = Times(kThreads,
                      "(i32.atomic.store (i32.const 0) (i32.const 0))"
                      "(if (i32.le_s (call $spawn (i32.const 0)) (i32.const 0)) (then unreachable))"
                      "(loop $wait (if (i32.eqz (i32.atomic.load (i32.const 0))) (then"
                      "(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))"
                      "(br $wait))))"),
       .thread = "(i32.atomic.store (i32.const 0) (i32.const 1))"
                 "(drop (memory.atomic.notify (i32.const 0) (i32.const 1)))"}));
  const AdmittedModule module = Admit(bytes);
  const Comparison spawn = Compare(
      kComparedRounds, [&] { return ExecuteMs(module) * 1000 / kThreads; },
      [&] { return BareElapsedMs(bytes, {}) * 1000 / kThreads; });
  std::printf("%-34s %9.1f us    | %9.1f us of pthread+instantiation | ratio %.2f | at most 2\n",
              "thread-spawn to the thread's code", spawn.figure, spawn.baseline, spawn.ratio);

  const double before_ms = CpuBeforeGuestMs();
  const Comparison cpu = Compare(
      kComparedRounds, [&] { return (CpuMs(module) - before_ms) * 1000 / kThreads; },
      [&] { return BareCpuMs(bytes, {}) * 1000 / kThreads; });
  std::printf("%-34s %9.1f us    | %9.1f us of pthread+instantiation | ratio %.2f | at most 2\n",
              "CPU of the same", cpu.figure, cpu.baseline, cpu.ratio);
}

void Bench::Metering() {
  // Processor time, because that is what counting and checking cost: elapsed time on a busy machine
  // depends on how the scheduler likes a process.
  const std::vector<std::uint8_t> bytes = Assemble(ThreadedText(
      {.start = fmt::format("(i32.store (i32.const 64) (call $work (i32.const {})))", kIterations),
       .extra = std::string(kWork)}));
  const AdmittedModule module = Admit(bytes);
  const double before_ms = CpuBeforeGuestMs();
  const Comparison product = Compare(
      kComparedRounds, [&] { return CpuMs(module) - before_ms; },
      [&] { return BareCpuMs(bytes, {}); });
  std::printf("%-34s %9.2f ms    | %9.2f ms of the bare engine       | ratio %.2f | at most 1.1\n",
              "CPU of a loop, fuel and epochs on", product.figure, product.baseline, product.ratio);
  const Comparison engine = Compare(
      kComparedRounds, [&] { return BareCpuMs(bytes, {}); },
      [&] { return BareCpuMs(bytes, {.metered = false, .interruptible = false}); });
  std::printf(
      "%-34s %9.2f ms    | %9.2f ms without both             | ratio %.2f | for comparison\n",
      "the same in the bare engine", engine.figure, engine.baseline, engine.ratio);
}

void Bench::Scaling() {
  constexpr int kParts = 4;
  // The numbers are data, because the machine's code has to be the same for any number of threads:
  // where the loop happens to lie in it changes its speed by a third.
  const auto module = [&](int threads) {
    return Module({.start =
                       "(local.set $i (i32.load (i32.const 8)))"
                       "(loop $again (drop (call $threadspawn (i32.const 0)))"
                       "(br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))"
                       // Until every part has said that it is done.
                       "(loop $wait (local.set $i (i32.atomic.load (i32.const 0)))"
                       "(if (i32.ne (local.get $i) (i32.load (i32.const 8))) (then"
                       "(drop (memory.atomic.wait32 (i32.const 0) (local.get $i) (i64.const -1)))"
                       "(br $wait))))",
                   .thread = "(i32.store (i32.const 64) (call $work (i32.load (i32.const 12))))"
                             "(drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))"
                             "(drop (memory.atomic.notify (i32.const 0) (i32.const 1)))",
                   .extra = fmt::format("(data (i32.const 8) \"{}{}\") {}", DataWord(threads),
                                        DataWord(kIterations / threads), kWork)});
  };
  const AdmittedModule one = module(1);
  const AdmittedModule four = module(kParts);
  const auto native_ms = [](int threads) {
    return InOwnSession([threads] {
      const auto start = std::chrono::steady_clock::now();
      std::vector<std::thread> parts;
      for (int i = 0; i < threads; ++i) {
        parts.emplace_back([threads] { NativeWork(kIterations / threads); });
      }
      for (std::thread& part : parts) {
        part.join();
      }
      return Ms(std::chrono::steady_clock::now() - start).count();
    });
  };
  const Comparison gain = Compare(
      kComparedRounds, [&] { return ExecuteMs(one) / ExecuteMs(four); },
      [&] { return native_ms(1) / native_ms(kParts); });
  std::printf("%-34s %9.2f x     | %9.2f x natively                  | ratio %.2f | at least 0.9\n",
              "four threads against one", gain.figure, gain.baseline, gain.ratio);
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<std::string_view, void (Bench::*)()> parts[] = {
      {"blob", &Bench::Blob},   {"poll", &Bench::Poll},         {"wake", &Bench::Wake},
      {"spawn", &Bench::Spawn}, {"metering", &Bench::Metering}, {"scaling", &Bench::Scaling}};
  Bench bench;
  const std::span<char*> chosen(argv + 1, argv + argc);
  for (const auto& [name, run] : parts) {
    if (chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end()) {
      (bench.*run)();
      std::fflush(stdout);
    }
  }
  return 0;
}
