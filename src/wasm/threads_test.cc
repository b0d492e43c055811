// Guests with threads in the real worker: profile wasi-threads.
#include <gtest/gtest.h>

#include "wasm/guest_run.h"

namespace bulkhead::wasm {
namespace {

using Kind = wire::Terminal::Kind;
using CompletedAs = wire::Terminal::CompletedAs;

constexpr std::uint32_t kThreadsMax = 4;

wire::Execute ThreadedExecute() {
  wire::Execute execute = DefaultExecute();
  execute.profile = wire::GuestProfile::kWasiThreads;
  execute.memory_overhead_bytes = 256U << 20;
  execute.threads.live_max = kThreadsMax;
  return execute;
}

struct ThreadedGuest {
  std::string start;   // of _start; $spawn(i32) -> i32, $exit(i32)
  std::string thread;  // of each thread; its locals are $id and $argument
  std::string_view memory = "1 16 shared";
};

std::string Build(const ThreadedGuest& guest) {
  return Assemble(fmt::format(R"((module
      (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (import "wasi_snapshot_preview1" "fd_write"
        (func $write (param i32 i32 i32 i32) (result i32)))
      (import "env" "memory" (memory {}))
      (func (export "_start") (local $i i32) {})
      (func (export "wasi_thread_start") (param $id i32) (param $argument i32) {})))",
                              guest.memory, guest.start, guest.thread));
}

wire::Terminal RunThreaded(const ThreadedGuest& guest, wire::Execute execute = ThreadedExecute()) {
  return GuestRun(Build(guest), std::move(execute)).Finish();
}

// Waits until the word at `address` is `value`; 10 s at most, then traps.
std::string WaitFor(int address, int value) {
  return fmt::format(R"(
      (block $there{0}
        (loop $again{0}
          (local.set $i (i32.atomic.load (i32.const {0})))
          (br_if $there{0} (i32.eq (local.get $i) (i32.const {1})))
          (br_if $again{0} (i32.ne (i32.const 2)
            (memory.atomic.wait32 (i32.const {0}) (local.get $i) (i64.const 10000000000)))))
        unreachable))",
                     address, value);
}

// Adds one to the word at `address` and wakes who waits for it.
std::string Count(int address) {
  return fmt::format(R"(
      (drop (i32.atomic.rmw.add (i32.const {0}) (i32.const 1)))
      (drop (memory.atomic.notify (i32.const {0}) (i32.const 100))))",
                     address);
}

constexpr std::string_view kForever =
    "(drop (memory.atomic.wait32 (i32.const 1024) (i32.const 0) (i64.const -1)))";

TEST(Threads, SeeOneMemoryAndTheirArguments) {
  // Every thread adds 100 * identity + argument.
  const wire::Terminal terminal = RunThreaded({
      .start = "(drop (call $spawn (i32.const 7))) (drop (call $spawn (i32.const 8)))" +
               WaitFor(0, 2) + "(call $exit (i32.load (i32.const 64)))",
      .thread = "(drop (i32.atomic.rmw.add (i32.const 64) (i32.add (local.get $argument) "
                "(i32.mul (local.get $id) (i32.const 100)))))" +
                Count(0),
  });
  EXPECT_EQ(terminal.kind, Kind::kNonzeroExit);
  EXPECT_EQ(terminal.status, 315);
}

TEST(Threads, AMemoryNobodyExportsIsSeenByHostFunctions) {
  GuestRun run(Build({.start = R"((i32.store (i32.const 0) (i32.const 32))
                                   (i32.store (i32.const 4) (i32.const 2))
                                   (i32.store (i32.const 32) (i32.const 0x6968))
                                   (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1)
                                     (i32.const 8))))",
                      .thread = ""}),
               ThreadedExecute());
  EXPECT_EQ(run.Finish().kind, Kind::kCompleted);
  EXPECT_EQ(run.Stdout(), "hi");
}

TEST(Threads, OnesThatStillRunEndWithTheFirst) {
  const wire::Terminal terminal = RunThreaded({
      .start =
          "(drop (call $spawn (i32.const 0))) (drop (call $spawn (i32.const 1)))" + WaitFor(0, 2),
      .thread = Count(0) + "(if (local.get $argument) (then " + std::string(kForever) +
                ")) (loop $again (br $again))",
  });
  EXPECT_EQ(terminal.kind, Kind::kCompleted);
  EXPECT_EQ(terminal.completed_as, CompletedAs::kStarted);
}

TEST(Case, ATrapOfAnyThreadEndsTheRunAndIsNotLost) {
  const wire::Terminal terminal = RunThreaded({
      .start = "(drop (call $spawn (i32.const 0)))" + std::string(kForever),
      .thread = "unreachable",
  });
  EXPECT_EQ(terminal.kind, Kind::kTrapped);
  ASSERT_TRUE(terminal.trap);
  EXPECT_EQ(terminal.trap->code, "unreachable");
  EXPECT_EQ(terminal.trap->thread, 1U);
  ASSERT_FALSE(terminal.trap->backtrace.empty());
}

TEST(Threads, AnyOfThemMayExit) {
  for (const int code : {0, 7}) {
    const wire::Terminal terminal = RunThreaded({
        .start = "(drop (call $spawn (i32.const 0)))" + std::string(kForever),
        .thread = fmt::format("(call $exit (i32.const {}))", code),
    });
    EXPECT_EQ(terminal.kind, code == 0 ? Kind::kCompleted : Kind::kNonzeroExit);
    EXPECT_EQ(terminal.completed_as, code == 0 ? CompletedAs::kExited : CompletedAs::kNone);
    EXPECT_EQ(terminal.status.value_or(0), code);
  }
}

TEST(Case, G37TooManyThreadsAreRefusedAndCounted) {
  const wire::Terminal terminal = RunThreaded({
      .start = R"((local.set $i (i32.const 0))
          (loop $again
            (if (i32.gt_s (call $spawn (i32.const 0)) (i32.const 0)) (then
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br $again))))
          (if (i32.ne (local.get $i) (i32.const 4)) (then unreachable)))",
      .thread = std::string(kForever),
  });
  EXPECT_EQ(terminal.kind, Kind::kCompleted);
  EXPECT_EQ(terminal.completed_as, CompletedAs::kStartedWithThreadRejections);
  EXPECT_EQ(terminal.rejections.capacity, 1U);
}

// Ten times as many as may live at once, one after the other; identities are never given twice.
TEST(Threads, MakeRoomWhenTheyEnd) {
  const std::string one_more = "(drop (call $spawn (i32.const 0)))";
  std::string start;
  for (int i = 1; i <= 40; ++i) {
    start += fmt::format(R"(
        (block $spawned{0} (loop $try{0}
          (br_if $spawned{0} (i32.eq (call $spawn (i32.const 0)) (i32.const {0})))
          (drop (memory.atomic.wait32 (i32.const 1024) (i32.const 0) (i64.const 1000000)))
          (br $try{0}))))",
                         i);
    start += WaitFor(4 * i, 1);
  }
  const wire::Terminal terminal = RunThreaded(
      {.start = start,
       .thread = "(drop (i32.atomic.rmw.add (i32.mul (local.get $id) (i32.const 4)) (i32.const 1)))"
                 "(drop (memory.atomic.notify (i32.mul (local.get $id) (i32.const 4)) "
                 "(i32.const 1)))"});
  EXPECT_EQ(terminal.kind, Kind::kCompleted) << terminal.diagnostic;
}

TEST(Case, G13SharedMemoryHasTheLimitToo) {
  wire::Execute execute = ThreadedExecute();
  execute.memory_bytes = 1U << 20;
  const wire::Terminal terminal = RunThreaded(
      {.start = R"((loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
                   (call $exit (memory.size)))",
       .thread = "",
       .memory = "1 65536 shared"},
      execute);
  EXPECT_EQ(terminal.status, 16);
  EXPECT_EQ(terminal.facts.memory_bytes_peak, 1U << 20);

  GuestRun large(Build({.start = "", .thread = "", .memory = "17 65536 shared"}), execute);
  large.SendExecute();
  const auto refused = large.parent().Expect<wire::Terminal>();
  EXPECT_EQ(refused.kind, Kind::kLimitReached);
  EXPECT_EQ(refused.limit, wire::Terminal::Limit::kMemory);
  EXPECT_NE(refused.diagnostic.find("1114112 bytes"), std::string::npos) << refused.diagnostic;
}

TEST(Threads, FuelIsSharedOutAndComesBack) {
  wire::Execute execute = ThreadedExecute();
  execute.fuel = 100'000;
  execute.threads.root_fuel = 20'000;
  execute.threads.child_fuel = 20'000;
  execute.threads.child_fuel_returns = true;
  // One after the other: far more than the fuel would do for if it did not come back.
  std::string start;
  for (int i = 1; i <= 20; ++i) {
    start += "(drop (call $spawn (i32.const 0)))" + WaitFor(4 * i, 1);
  }
  const wire::Terminal enough = RunThreaded(
      {.start = start,
       .thread = "(drop (i32.atomic.rmw.add (i32.mul (local.get $id) (i32.const 4)) (i32.const 1)))"
                 "(drop (memory.atomic.notify (i32.mul (local.get $id) (i32.const 4)) "
                 "(i32.const 1)))"},
      execute);
  EXPECT_EQ(enough.kind, Kind::kCompleted) << enough.diagnostic;
  EXPECT_GT(enough.facts.fuel_used, 0U);
  EXPECT_LT(enough.facts.fuel_used, 100'000U);

  const wire::Terminal spinning =
      RunThreaded({.start = "(drop (call $spawn (i32.const 0)))" + std::string(kForever),
                   .thread = "(loop $again (br $again))"},
                  execute);
  EXPECT_EQ(spinning.kind, Kind::kOutOfFuel);

  execute.threads.child_fuel = 90'000;
  const wire::Terminal refused =
      RunThreaded({.start = "(drop (call $spawn (i32.const 0)))", .thread = ""}, execute);
  EXPECT_EQ(refused.rejections.fuel, 1U);
}

TEST(Threads, AStopReachesEveryOne) {
  GuestRun run(Build({.start = "(drop (call $spawn (i32.const 0))) (loop $again (br $again))",
                      .thread = "(loop $again (br $again))"}),
               ThreadedExecute());
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.parent().Send(wire::Cancel{});
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);
  run.parent().ExpectExit(0);
}

TEST(Threads, EntryPointAndMemoryAreRequired) {
  const struct {
    std::string_view text;
    std::string_view says;
  } rows[] = {
      {R"((module (import "env" "memory" (memory 1 1 shared))
           (import "wasi" "thread-spawn" (func (param i32) (result i32)))
           (func (export "_start"))))",
       "wasi_thread_start"},
      {R"((module (import "env" "memory" (memory 1 1))
           (func (export "_start")) (func (export "wasi_thread_start") (param i32 i32))))",
       "one shared memory"},
  };

  for (const auto& row : rows) {
    GuestRun run(Assemble(row.text), ThreadedExecute());
    run.SendExecute();
    const auto terminal = run.parent().Expect<wire::Terminal>();
    EXPECT_EQ(terminal.kind, Kind::kModuleRefused);
    EXPECT_NE(terminal.diagnostic.find(row.says), std::string::npos) << terminal.diagnostic;
  }
}

}  // namespace
}  // namespace bulkhead::wasm
