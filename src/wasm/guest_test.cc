// Guests of every kind in the real worker program, which locks itself down as in production.
#include "wasm/guest.h"

#include <gtest/gtest.h>

#include "wasm/guest_run.h"

namespace bulkhead::wasm {
namespace {

using CompletedAs = wire::Terminal::CompletedAs;
using Kind = wire::Terminal::Kind;
using Limit = wire::Terminal::Limit;

wire::Terminal RunText(std::string_view text, wire::Execute execute = DefaultExecute()) {
  GuestRun run(Assemble(text), std::move(execute));
  return run.Finish();
}

// A module whose entry point is `body`.
std::string Start(std::string_view body, std::string_view fields = "") {
  return fmt::format(
      R"((module {} (memory (export "memory") 1) (func $start (export "_start") {})))", fields,
      body);
}

constexpr std::string_view kImportExit =
    R"((import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32))))";
const std::string kImportWrite = WasiImport("fd_write", "i32 i32 i32 i32");
const std::string kImportRead = WasiImport("fd_read", "i32 i32 i32 i32");
constexpr std::string_view kSpin = "(loop $l (br $l))";
// One subscription: a relative timeout of an hour.
constexpr std::string_view kSleeper = R"((module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 3600000000000))
    (drop (call $poll (i32.const 0) (i32.const 100) (i32.const 1) (i32.const 200))))))";

TEST(Guest, PrintsAndReturns) {
  GuestRun run(Assemble(fmt::format(R"((module {} (memory (export "memory") 1)
      (data (i32.const 0) "\10\00\00\00\0d\00\00\00")
      (data (i32.const 16) "hello, world\n")
      (func (export "_start")
        (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))))",
                                    kImportWrite)));
  const wire::Terminal terminal = run.Finish();
  EXPECT_EQ(terminal.kind, Kind::kCompleted);
  EXPECT_EQ(terminal.completed_as, CompletedAs::kStarted);
  EXPECT_EQ(run.Stdout(), "hello, world\n");
  EXPECT_EQ(terminal.facts.memory_bytes_peak, 65536U);
  EXPECT_FALSE(terminal.facts.memory_growth_refused);
}

TEST(Guest, SeesItsArgumentsAndEnvironment) {
  wire::Execute execute = DefaultExecute();
  execute.arguments = {"program", "--flag"};
  execute.environment = {"KEY=value"};
  // Traps unless there are two arguments of 15 bytes and one environment entry.
  const wire::Terminal terminal = RunText(fmt::format(R"((module {} {}
    (memory (export "memory") 1)
    (func $require (param i32 i32)
      (if (i32.ne (i32.load (local.get 0)) (local.get 1)) (then unreachable)))
    (func (export "_start")
      (drop (call $args_sizes_get (i32.const 0) (i32.const 4)))
      (drop (call $environ_sizes_get (i32.const 8) (i32.const 12)))
      (call $require (i32.const 0) (i32.const 2)) (call $require (i32.const 4) (i32.const 15))
      (call $require (i32.const 8) (i32.const 1)) (call $require (i32.const 12) (i32.const 10)))))",
                                                      WasiImport("args_sizes_get", "i32 i32"),
                                                      WasiImport("environ_sizes_get", "i32 i32")),
                                          std::move(execute));
  EXPECT_EQ(terminal.kind, Kind::kCompleted);
}

TEST(Guest, RunsWithoutAnExportedMemory) {
  // Host calls without a memory fail in the guest's own terms; proc_exit needs none.
  const wire::Terminal terminal = RunText(fmt::format(
      "(module {} {} (func (export \"_start\") "
      "(call $exit (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))",
      kImportExit, kImportWrite));
  constexpr std::int32_t kFault = 21;
  EXPECT_EQ(terminal.status, kFault);
}

TEST(Case, G10EveryExitCodeIsReportedExactly) {
  for (const std::uint32_t code : {0U, 1U, 3U, 124U, 125U, 126U, 137U, 255U, 4294967295U}) {
    const wire::Terminal terminal =
        RunText(Start(fmt::format("(call $exit (i32.const {}))", code), kImportExit));
    if (code == 0) {
      EXPECT_EQ(terminal.completed_as, CompletedAs::kExited);
    } else {
      EXPECT_EQ(terminal.kind, Kind::kNonzeroExit) << code;
      EXPECT_EQ(terminal.status, static_cast<std::int32_t>(code));
    }
    EXPECT_FALSE(terminal.trap);
  }
}

struct TrapCase {
  std::string_view code;
  std::string text;
};

void PrintTo(const TrapCase& trap, std::ostream* out) {
  *out << trap.code;
}

class Traps : public testing::TestWithParam<TrapCase> {};

TEST_P(Traps, AreNamed) {
  const wire::Terminal terminal = RunText(GetParam().text);
  EXPECT_EQ(terminal.kind, Kind::kTrapped);
  ASSERT_TRUE(terminal.trap);
  EXPECT_EQ(terminal.trap->code, GetParam().code);
  EXPECT_FALSE(terminal.trap->message.empty());
  ASSERT_FALSE(terminal.trap->backtrace.empty());
  EXPECT_EQ(terminal.trap->backtrace.front().rfind("function ", 0), 0U)
      << terminal.trap->backtrace.front();
}

INSTANTIATE_TEST_SUITE_P(
    All, Traps,
    testing::Values(
        TrapCase{"unreachable", Start("unreachable")},
        TrapCase{"unreachable",
                 "(module (func $s unreachable) (start $s) (func (export \"_start\")))"},
        TrapCase{"memory-out-of-bounds", Start("(drop (i32.load (i32.const 65536)))")},
        TrapCase{"memory-out-of-bounds",
                 Start("(i32.store offset=0xffffffff (i32.const 0xffffffff) (i32.const 1))")},
        TrapCase{"stack-overflow", Start("(call $start)")},
        TrapCase{"integer-division-by-zero",
                 Start("(drop (i32.div_u (i32.const 1) (i32.const 0)))")},
        TrapCase{"integer-overflow",
                 Start("(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))")},
        TrapCase{"bad-conversion-to-integer", Start("(drop (i32.trunc_f32_s (f32.const nan)))")},
        TrapCase{"indirect-call-to-null",
                 Start("(call_indirect (i32.const 0))", "(table 1 funcref)")},
        TrapCase{"table-out-of-bounds",
                 Start("(call_indirect (i32.const 7))", "(table 1 funcref)")},
        TrapCase{"bad-signature", Start("(call_indirect (param i32) (i32.const 1) (i32.const 0))",
                                        "(table funcref (elem $start))")},
        TrapCase{"uncaught-exception", Start("(throw $e)", "(tag $e)")}));

TEST(Guest, BacktraceIsBoundedAndShowsNamesAsText) {
  const wire::Terminal deep =
      RunText(R"((module (func $"evil\0a\1b[31m" (export "_start") (call $"evil\0a\1b[31m"))))");
  ASSERT_TRUE(deep.trap);
  EXPECT_GE(deep.trap->backtrace.size(), 10U);
  EXPECT_LE(deep.trap->backtrace.size(), wire::kBacktraceFramesMax);
  for (const std::string& line : deep.trap->backtrace) {
    EXPECT_NE(line.find("'evil\\x0a\\x1b[31m'"), std::string::npos) << line;
  }
}

TEST(Guest, OutOfFuel) {
  wire::Execute execute = DefaultExecute();
  execute.fuel = 10'000;
  wire::Terminal terminal = RunText(Start(kSpin), execute);
  EXPECT_EQ(terminal.kind, Kind::kOutOfFuel);
  EXPECT_EQ(terminal.facts.fuel_used, 10'000U);
  // The start section is metered too.
  terminal = RunText(
      fmt::format("(module (func $s {}) (start $s) (func (export \"_start\")))", kSpin), execute);
  EXPECT_EQ(terminal.kind, Kind::kOutOfFuel);
  // The same guest needs the same fuel each time.
  const std::string counted = Start(
      "(local i32) (loop $l (br_if $l (i32.lt_u (local.tee 0 (i32.add (local.get 0) "
      "(i32.const 1))) (i32.const 100))))");
  const std::uint64_t used = RunText(counted, execute).facts.fuel_used;
  EXPECT_GT(used, 100U);
  EXPECT_EQ(RunText(counted, execute).facts.fuel_used, used);
}

TEST(Case, G02CancelReachesASpinningGuest) {
  GuestRun run(Assemble(Start(kSpin)));
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.parent().Send(wire::Cancel{});
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);
  run.parent().ExpectExit(0);
}

TEST(Case, G02CancelReachesAGuestInItsStartSection) {
  GuestRun run(
      Assemble(fmt::format("(module (func $s {}) (start $s) (func (export \"_start\")))", kSpin)));
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.parent().Send(wire::Cancel{});
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);
  run.parent().ExpectExit(0);
}

TEST(Case, G02CancelReachesASleepingGuest) {
  GuestRun run(Assemble(kSleeper));
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.parent().Send(wire::Cancel{});
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);
  run.parent().ExpectExit(0);
}

TEST(Case, G02CancelReachesAGuestThatReadsASilentStdin) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  GuestRun run(Assemble(
      Start("(i32.store (i32.const 4) (i32.const 1))"
            "(drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))",
            kImportRead)));
  run.UseStdin(reader.borrow());
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.parent().Send(wire::Cancel{});
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);
  run.parent().ExpectExit(0);
}

TEST(Guest, DeadlineIsTheWorkersOwnToo) {
  wire::Execute execute = DefaultExecute();
  execute.remaining_ms = 50;
  EXPECT_EQ(RunText(Start(kSpin), execute).kind, Kind::kDeadlineExceeded);
  EXPECT_EQ(RunText(kSleeper, execute).kind, Kind::kDeadlineExceeded);
}

TEST(Guest, AVanishedParentEndsTheRun) {
  GuestRun run(Assemble(Start(kSpin)));
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.parent().CloseChannel();
  run.parent().ExpectExit(0);
}

TEST(Guest, GarbageWhileRunningIsAStop) {
  GuestRun run(Assemble(Start(kSpin)));
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.parent().SendBytes("?");
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);
  run.parent().ExpectExit(0);
}

// 300 nested loops over 300 locals: a few kilobytes that keep the compiler busy for many seconds.
std::string CompileBomb() {
  constexpr int kSize = 300;
  std::string text = "(module (func (export \"_start\") (local";
  for (int i = 0; i < kSize; ++i) {
    text += " i32";
  }
  text += ")";
  for (int i = 0; i < kSize; ++i) {
    text += fmt::format("(loop $l{0} (local.set {0} (i32.add (local.get {0}) (local.get {1})))", i,
                        (i * 7 + 1) % kSize);
  }
  for (int i = kSize - 1; i >= 0; --i) {
    text += fmt::format("(br_if $l{0} (local.get {0})))", i);
  }
  return text + "))";
}

TEST(Guest, CancelWhileCompilingEndsAtOnce) {
  GuestRun run(Assemble(CompileBomb()));
  run.SendExecute();
  run.parent().Send(wire::Cancel{});
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);  // no Started before it
  run.parent().ExpectExit(0);
}

TEST(Case, G05RefusedGrowthIsOnRecord) {
  const wire::Terminal terminal = RunText(Start(
      "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable"));
  EXPECT_EQ(terminal.kind, Kind::kTrapped);
  EXPECT_TRUE(terminal.facts.memory_growth_refused);
  EXPECT_LE(terminal.facts.memory_bytes_peak, 64U << 20);
  EXPECT_GT(terminal.facts.memory_bytes_peak, 62U << 20);
}

TEST(Guest, GrowthUpToTheLimitIsFine) {
  const wire::Terminal terminal =
      RunText(Start("(if (i32.eq (memory.grow (i32.const 1023)) (i32.const -1)) (then unreachable))"
                    "(memory.fill (i32.const 0) (i32.const 1) (i32.const 0x4000000))"));
  EXPECT_EQ(terminal.kind, Kind::kCompleted);
  EXPECT_EQ(terminal.facts.memory_bytes_peak, 64U << 20);
  EXPECT_FALSE(terminal.facts.memory_growth_refused);
}

TEST(Guest, TheLimitHoldsForAllMemoriesTogether) {
  // Each would fit alone.
  const wire::Terminal terminal =
      RunText(R"((module (memory $a 1) (memory $b 1) (func (export "_start")
        (drop (memory.grow $a (i32.const 600)))
        (if (i32.ne (memory.grow $b (i32.const 600)) (i32.const -1)) (then unreachable)))))");
  EXPECT_EQ(terminal.kind, Kind::kCompleted);
  EXPECT_TRUE(terminal.facts.memory_growth_refused);
}

TEST(Guest, AMemoryThatCannotBeMadeIsALimitReached) {
  const wire::Terminal terminal = RunText(R"((module (memory 1025) (func (export "_start"))))");
  EXPECT_EQ(terminal.kind, Kind::kLimitReached);
  EXPECT_EQ(terminal.limit, Limit::kMemory);
  EXPECT_NE(terminal.diagnostic.find("67108864 bytes"), std::string::npos) << terminal.diagnostic;
}

TEST(Guest, TablesAreLimited) {
  EXPECT_EQ(RunText(R"((module (table $t 0 funcref) (func (export "_start")
      (if (i32.ne (table.grow $t (ref.null func) (i32.const 10000000)) (i32.const -1))
        (then unreachable)))))")
                .kind,
            Kind::kCompleted);
  const wire::Terminal terminal =
      RunText(R"((module (table 10000000 funcref) (func (export "_start"))))");
  EXPECT_EQ(terminal.kind, Kind::kLimitReached);
  EXPECT_EQ(terminal.limit, Limit::kMemory);
}

TEST(Guest, OutOfMemoryWhileCompilingIsNotHidden) {
  GuestRun run(Assemble(CompileBomb()));
  wire::Hello hello = worker::DefaultHello();
  hello.compile_memory_bytes = 8U << 20;
  run.SendExecute(hello);
  const int status = run.parent().WaitForExit();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  EXPECT_NE(run.parent().Stderr().find("memory allocation of"), std::string::npos)
      << run.parent().Stderr();
}

TEST(Guest, WaitsForASlowReaderOfStdout) {
  constexpr std::size_t kPieceBytes = 60'000;
  constexpr std::size_t kPieces = 100;
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  GuestRun run(Assemble(Start(
      fmt::format(
          "(local i32) (i32.store (i32.const 4) (i32.const {}))"
          "(loop $l (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))"
          "(if (i32.ne (i32.load (i32.const 8)) (i32.const {})) (then unreachable))"
          "(br_if $l (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const "
          "{}))))",
          kPieceBytes, kPieceBytes, kPieces),
      kImportWrite)));
  run.UseStdout(std::move(writer));
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.CloseStdout();
  std::size_t total = 0;
  char piece[1000];
  for (ssize_t got = 0; (got = read(reader.get(), piece, sizeof piece)) > 0;) {
    total += static_cast<std::size_t>(got);
  }
  EXPECT_EQ(total, kPieceBytes * kPieces);
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCompleted);
  run.parent().ExpectExit(0);
}

TEST(Guest, CancelReachesAGuestWhoseStdoutIsFull) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  GuestRun run(Assemble(Start(
      "(i32.store (i32.const 4) (i32.const 65000))"
      "(loop $l (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))"
      "(br $l))",
      kImportWrite)));
  run.UseStdout(UniqueFd(ends[1]));
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.parent().Send(wire::Cancel{});
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);
  run.parent().ExpectExit(0);
}

void ExpectRefusal(const std::string& module, std::string_view reason,
                   std::string_view in_diagnostic) {
  GuestRun run(module);
  run.SendExecute();
  const auto terminal = run.parent().Expect<wire::Terminal>();
  EXPECT_EQ(terminal.kind, Kind::kModuleRefused);
  EXPECT_EQ(terminal.reason, reason);
  EXPECT_NE(terminal.diagnostic.find(in_diagnostic), std::string::npos) << terminal.diagnostic;
  run.parent().ExpectExit(0);
}

TEST(Guest, RefusedModules) {
  ExpectRefusal("", "invalid-module", "");
  ExpectRefusal("no module", "invalid-module", "");
  ExpectRefusal(Assemble(R"((module (func $f (i32.const 1)) (func (export "_start"))))"),
                "invalid-module", "type mismatch");
  ExpectRefusal(Assemble(R"((module (memory i64 1) (func (export "_start"))))"), "invalid-module",
                "memory64");
  ExpectRefusal(Assemble(R"((module (import "env" "f" (func)) (func (export "_start"))))"),
                "link-error", "env::f");
  ExpectRefusal(Assemble(
                    R"((module (import "wasi_snapshot_preview1" "proc_exit" (func))
                     (func (export "_start"))))"),
                "link-error", "proc_exit");
  ExpectRefusal(Assemble("(module)"), "link-error", "_start");
  ExpectRefusal(Assemble(R"((module (func (export "_start") (param i32))))"), "link-error",
                "_start");
}

TEST(Guest, ImpossibleSettingsAreRefusedAfterReady) {
  wire::Execute execute = DefaultExecute();
  execute.stack_bytes = 0;
  GuestRun run(Assemble(Start("")), std::move(execute));
  run.SendExecute();
  const auto terminal = run.parent().Expect<wire::Terminal>();
  EXPECT_EQ(terminal.kind, Kind::kProtocolFailure);
  EXPECT_NE(terminal.diagnostic.find("stack"), std::string::npos);
  run.parent().ExpectExit(0);
}

TEST(Guest, ALargeModuleIsCompiledByManyThreads) {
  constexpr std::size_t kDataBytes = kParallelCompileBytesMin + 1;
  const wire::Terminal terminal =
      RunText(fmt::format(R"((module (memory 2) (data (i32.const 0) "{}") (func (export "_start")
        (if (i32.ne (i32.load8_u (i32.const {})) (i32.const 120)) (then unreachable)))))",
                          std::string(kDataBytes, 'x'), kDataBytes - 1));
  EXPECT_EQ(terminal.kind, Kind::kCompleted);
}

TEST(Guest, WithoutEpochsHostCallsStillStop) {
  wire::Execute execute = DefaultExecute();
  execute.cooperative = false;
  EXPECT_EQ(RunText(Start(""), execute).kind, Kind::kCompleted);
  execute.remaining_ms = 20;
  EXPECT_EQ(RunText(kSleeper, execute).kind, Kind::kDeadlineExceeded);
}

TEST(Guest, SmallAndLargeStacks) {
  wire::Execute execute = DefaultExecute();
  execute.stack_bytes = 64U << 10;
  EXPECT_EQ(RunText(Start("(call $start)"), execute).trap->code, "stack-overflow");
  // A thousand nested frames of some hundred bytes each.
  const std::string nest = R"((module (func $f (param i32) (result i32)
      (if (result i32) (local.get 0)
        (then (i32.add (call $f (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
        (else (i32.const 0)))) (func (export "_start") (drop (call $f (i32.const 500000))))))";
  execute.stack_bytes = 256U << 20;
  EXPECT_EQ(RunText(nest, execute).kind, Kind::kCompleted);
}

}  // namespace
}  // namespace bulkhead::wasm
