// What sketches cost: blobs, operations, threads. Prints one line per bar, as run_bench does.
#include <bulkhead/run.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "baselines.h"
#include "support/sketch_module.h"

namespace {

using bulkhead::AdmittedModule;
using bulkhead::ModuleSource;
using bulkhead::RunReport;
using bulkhead::RunRequest;
using bulkhead::bench::Ms;
using bulkhead::bench::Repeat;
using bulkhead::test::SketchParts;

template <class T>
T Must(bulkhead::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "sketch_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return *std::move(result);
}

constexpr int kRounds = 9;
constexpr long kIterations = 100'000'000;  // of one of four equal parts
constexpr int kParts = 4;

// $n calls of `body`.
std::string Times(long n, std::string_view body) {
  return fmt::format(
      "(local.set $i (i32.const {})) (loop $again {} "
      "(br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))",
      n, body);
}

// What every part computes, here and in the guest.
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
  void Scaling();

 private:
  AdmittedModule Module(const SketchParts& parts) {
    const std::string text = bulkhead::test::SketchText(parts);
    const ModuleSource source = Must(ModuleSource::FromBytes(
        {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 1 << 20));
    const ModuleSource binary = Must(bulkhead::ConvertText(*runtime_, source, request_));
    std::vector<std::uint8_t> bytes(binary.bytes().begin(), binary.bytes().end());
    const std::string sections = bulkhead::test::SketchSections();
    bytes.insert(bytes.end(), sections.begin(), sections.end());
    return Must(Must(ModuleSource::FromBytes(bytes, 1 << 20)).Admit({}));
  }

  // How long the guest ran, compiling not included.
  double ExecuteMs(const AdmittedModule& module) {
    const RunReport report = bulkhead::RunModule(*runtime_, module, request_);
    if (!report.outcome.completed()) {
      std::fprintf(stderr, "sketch_bench: %s: %s\n", report.outcome.CodeText().c_str(),
                   report.diagnostic.c_str());
      std::exit(1);
    }
    return Ms(report.durations[static_cast<std::size_t>(bulkhead::Stage::kExecute)]).count();
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
  const double empty_ms = Repeat(kRounds, [&] { return ExecuteMs(empty); }).median;
  const double poll_ms = Repeat(kRounds, [&] { return ExecuteMs(poll); }).median;
  std::printf("%-34s %9.1f ns    | %9.1f ns of an empty host call | ratio %.2f | at most 2\n",
              "operation_poll", poll_ms * 1e6 / kCalls, empty_ms * 1e6 / kCalls,
              poll_ms / empty_ms);
}

void Bench::Scaling() {
  const auto module = [&](int threads) {
    // The first thread spawns and waits until every part has said that it is done.
    std::string start;
    for (int i = 0; i < threads; ++i) {
      start += "(drop (call $threadspawn (i32.const 0)))";
    }
    start += fmt::format(
        "(loop $wait (local.set $i (i32.atomic.load (i32.const 0)))"
        "(if (i32.ne (local.get $i) (i32.const {})) (then"
        "(drop (memory.atomic.wait32 (i32.const 0) (local.get $i) (i64.const -1))) (br $wait))))",
        threads);
    return Module(
        {.start = start,
         .thread = fmt::format("(i32.store (i32.const 64) (call $work (i32.const {})))"
                               "(drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))"
                               "(drop (memory.atomic.notify (i32.const 0) (i32.const 1)))",
                               kIterations * kParts / threads),
         .extra = std::string(kWork)});
  };
  const AdmittedModule one = module(1);
  const AdmittedModule four = module(kParts);
  const auto native = [](int threads) {
    return Repeat(kRounds,
                  [threads] {
                    const auto start = std::chrono::steady_clock::now();
                    std::vector<std::thread> parts;
                    for (int i = 0; i < threads; ++i) {
                      parts.emplace_back([threads] { NativeWork(kIterations * kParts / threads); });
                    }
                    for (std::thread& part : parts) {
                      part.join();
                    }
                    return Ms(std::chrono::steady_clock::now() - start).count();
                  })
        .median;
  };
  const double guest_gain = Repeat(kRounds, [&] { return ExecuteMs(one); }).median /
                            Repeat(kRounds, [&] { return ExecuteMs(four); }).median;
  const double native_gain = native(1) / native(kParts);
  std::printf("%-34s %9.2f x     | %9.2f x natively | ratio %.2f | at least 0.9\n",
              "four threads against one", guest_gain, native_gain, guest_gain / native_gain);
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<std::string_view, void (Bench::*)()> parts[] = {
      {"blob", &Bench::Blob}, {"poll", &Bench::Poll}, {"scaling", &Bench::Scaling}};
  Bench bench;
  for (const auto& [name, run] : parts) {
    if (argc < 2 || name == argv[1]) {
      (bench.*run)();
      std::fflush(stdout);
    }
  }
  return 0;
}
