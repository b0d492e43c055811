// Sketches in the real worker: the fixtures of the specification, threads, operations, outputs.
#include <gtest/gtest.h>

#include "support/sketch_module.h"
#include "wasm/guest_run.h"

namespace bulkhead::wasm {
namespace {

using Kind = wire::Terminal::Kind;
using CompletedAs = wire::Terminal::CompletedAs;
using test::SketchFixture;
using test::SketchParts;

struct Fuel {
  std::uint64_t total;
  std::uint64_t root;
  std::uint64_t child;
};

constexpr Fuel kNormal = {1'700'000, 100'000, 100'000};
constexpr Fuel kLong = {1'700'000'000'000, 100'000'000'000, 100'000'000'000};
constexpr Fuel kTiny = {30'000, 10'000, 10'000};

wire::Execute SketchExecute(const Fuel& fuel = kNormal, std::uint32_t threads = 16) {
  wire::Execute execute = DefaultExecute();
  execute.profile = wire::GuestProfile::kSketch;
  execute.memory_overhead_bytes = 256U << 20;
  execute.fuel = fuel.total;
  execute.threads = {threads, threads, fuel.root, fuel.child, false};
  execute.blobs = {64U << 10, 1U << 20, 2U << 20, 3U << 20, 2, 2, 4, 5'000'000};
  return execute;
}

std::string Module(const SketchParts& parts) {
  return Assemble(test::SketchText(parts)) + test::SketchSections();
}

wire::Terminal RunSketch(const SketchParts& parts, wire::Execute execute = SketchExecute()) {
  return GuestRun(Module(parts), std::move(execute)).Finish();
}

TEST(OneShot, G2FixturesEndAsTheyShould) {
  const wire::Terminal empty = RunSketch(SketchFixture("empty"));
  EXPECT_EQ(empty.kind, Kind::kCompleted);
  EXPECT_EQ(empty.completed_as, CompletedAs::kStarted);
  EXPECT_EQ(RunSketch(SketchFixture("exit", 0)).completed_as, CompletedAs::kExited);
  EXPECT_EQ(RunSketch(SketchFixture("trap")).kind, Kind::kTrapped);
  EXPECT_EQ(RunSketch(SketchFixture("starttrap")).kind, Kind::kTrapped);
  EXPECT_EQ(RunSketch(SketchFixture("loop"), SketchExecute(kTiny)).kind, Kind::kOutOfFuel);
}

TEST(OneShot, G4ExitCodesAreExact) {
  const wire::Terminal terminal = RunSketch(SketchFixture("exit", 7));
  EXPECT_EQ(terminal.kind, Kind::kNonzeroExit);
  EXPECT_EQ(terminal.status, 7);
}

TEST(OneShot, G5TheThreadAboveTheCapIsRejectedAndCounted) {
  const wire::Terminal terminal = RunSketch(SketchFixture("cap"), SketchExecute(kNormal, 1));
  EXPECT_EQ(terminal.kind, Kind::kCompleted) << terminal.diagnostic;
  EXPECT_EQ(terminal.completed_as, CompletedAs::kStartedWithThreadRejections);
  EXPECT_EQ(terminal.rejections.capacity, 1U);
}

TEST(OneShot, G6BadPointersChangeNothing) {
  EXPECT_EQ(RunSketch(SketchFixture("fault")).completed_as, CompletedAs::kStarted);
}

TEST(OneShot, G7FuelBoundsTheStartSectionToo) {
  EXPECT_EQ(RunSketch(SketchFixture("startloop"), SketchExecute({2, 1, 1})).kind, Kind::kOutOfFuel);
  EXPECT_EQ(RunSketch(SketchFixture("loop"), SketchExecute({20, 10, 10})).kind, Kind::kOutOfFuel);
}

TEST(OneShot, G8AChildOutOfFuelFailsTheRunByName) {
  const wire::Terminal terminal = RunSketch(SketchFixture("childloop"), SketchExecute(kTiny));
  EXPECT_EQ(terminal.kind, Kind::kChildFailure);
  EXPECT_FALSE(terminal.status);
  EXPECT_EQ(terminal.diagnostic, "thread 1: all its fuel is used up");
}

TEST(OneShot, G9FuelIsSharedOutInSlices) {
  const wire::Terminal short_of =
      RunSketch(SketchFixture("twospawn"), SketchExecute({200'010, 100'000, 100'000}));
  EXPECT_EQ(short_of.completed_as, CompletedAs::kStartedWithThreadRejections);
  EXPECT_EQ(short_of.rejections.fuel, 1U);
  const wire::Terminal enough =
      RunSketch(SketchFixture("twospawn"), SketchExecute({300'000, 100'000, 100'000}));
  EXPECT_EQ(enough.completed_as, CompletedAs::kStarted);
}

TEST(OneShot, FailingThreadsAreNamedWithCauseAndPlace) {
  const wire::Terminal trapped = RunSketch(
      {.start = "(drop (call $threadspawn (i32.const 0)))"
                "(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))",
       .thread = "unreachable"});
  EXPECT_EQ(trapped.kind, Kind::kChildFailure);
  ASSERT_TRUE(trapped.trap);
  EXPECT_EQ(trapped.trap->thread, 1U);
  EXPECT_EQ(trapped.trap->code, "unreachable");
  EXPECT_FALSE(trapped.trap->backtrace.empty());

  const wire::Terminal exited = RunSketch({.start = "(drop (call $threadspawn (i32.const 9)))",
                                           .thread = "(call $proc_exit (local.get $argument))"});
  EXPECT_EQ(exited.kind, Kind::kChildFailure);
  EXPECT_EQ(exited.status, 9);
}

TEST(OneShot, AThreadThatExitsWithSuccessEndsAlone) {
  const wire::Terminal terminal = RunSketch({.start = "(drop (call $threadspawn (i32.const 0)))",
                                             .thread = "(call $proc_exit (i32.const 0))"});
  EXPECT_EQ(terminal.kind, Kind::kCompleted);
  EXPECT_EQ(terminal.completed_as, CompletedAs::kStarted);
}

// Submits `kind`, waits, and leaves the packed result in $op.
std::string Do(int kind, std::string_view a0 = "(i64.const 0)",
               std::string_view a1 = "(i64.const 0)") {
  return fmt::format(R"(
      (local.set $op (call $operation_submit (i32.const {}) {} {}))
      (if (i64.eqz (local.get $op)) (then (call $proc_exit (i32.const 100))))
      (drop (call $operation_yield (local.get $op)))
      (local.set $op (call $operation_poll (local.get $op))))",
                     kind, a0, a1);
}

constexpr std::string_view kExitWithStatus =
    "(call $proc_exit (i32.wrap_i64 (i64.and (local.get $op) (i64.const 255))))";

TEST(OneShot, OperationsAreReached) {
  const wire::Terminal slept = RunSketch(
      {.start = Do(12, "(i64.const 10)") + std::string(kExitWithStatus), .operations = true});
  EXPECT_EQ(slept.status, 1);  // completed

  const wire::Terminal unknown = RunSketch(
      {.start = "(drop (call $operation_submit (i32.const 99) (i64.const 0) (i64.const 0)))",
       .operations = true});
  EXPECT_EQ(unknown.kind, Kind::kTrapped);
  EXPECT_NE(unknown.trap->message.find("no operation of this kind"), std::string::npos);
}

// A blob with "guest exact output" that is sealed and committed.
std::string WriteAndCommit() {
  return R"(
      (local $blob i64) )" +
         Do(5) + "(local.set $blob (i64.shr_u (local.get $op) (i64.const 8)))" +
         Do(6, "(local.get $blob)", "(i64.const 0x1200001000)") +  // 18 bytes at 4096
         Do(9, "(local.get $blob)") +
         Do(10, "(local.get $blob)",
            "(call $operation_submit (i32.const 11) (i64.const 0) (i64.const 0))");
}

SketchParts Committing(std::string_view end) {
  // The start section of a module with shared memory writes what a linker would.
  return {
      .start = "(call $commit)" + std::string(end),
      .operations = true,
      .extra = fmt::format(
                   "(data $text \"guest exact output\") (func $commit (local $op i64) {} {})",
                   std::string("(memory.init $text (i32.const 4096) (i32.const 0) (i32.const 18))"),
                   "(call $commit_now)") +
               fmt::format("(func $commit_now (local $op i64) {} (if (i64.ne (i64.and "
                           "(local.get $op) (i64.const 255)) (i64.const 1)) (then "
                           "(call $proc_exit (i32.wrap_i64 (i64.and (local.get $op) "
                           "(i64.const 255)))))))",
                           WriteAndCommit())};
}

TEST(OneShot, ACommittedBlobIsTheOutput) {
  const UniqueFd output = worker::MemoryFile("", 0);
  wire::Execute execute = SketchExecute();
  execute.output_bytes_max = 1U << 20;
  execute.output_name = "out";
  GuestRun run(Module(Committing("")), execute);
  run.UseOutput(output.borrow());
  const wire::Terminal terminal = run.Finish();
  EXPECT_EQ(terminal.kind, Kind::kCompleted) << terminal.diagnostic << terminal.status.value_or(0);
  EXPECT_TRUE(terminal.facts.output_created);
  EXPECT_EQ(worker::ContentOf(output.borrow()), "guest exact output");
}

TEST(OneShot, WithoutAGrantThereIsNoOutput) {
  const wire::Terminal terminal = RunSketch(Committing(""));
  EXPECT_EQ(terminal.kind, Kind::kNonzeroExit);
  EXPECT_EQ(terminal.status, 100);  // refused at the commit
}

TEST(OneShot, AnOutputAboveItsLimitSpoilsSuccess) {
  const UniqueFd output = worker::MemoryFile("", 0);
  wire::Execute execute = SketchExecute();
  execute.output_bytes_max = 17;
  execute.output_name = "out";
  GuestRun run(Module(Committing("")), execute);
  run.UseOutput(output.borrow());
  const wire::Terminal terminal = run.Finish();
  EXPECT_EQ(terminal.kind, Kind::kNonzeroExit);
  EXPECT_EQ(terminal.status, 7);  // rejected
  EXPECT_EQ(worker::ContentOf(output.borrow()), "");
}

TEST(OneShot, G12ATrapAfterACommitIsStillATrap) {
  const UniqueFd output = worker::MemoryFile("", 0);
  wire::Execute execute = SketchExecute();
  execute.output_bytes_max = 1U << 20;
  execute.output_name = "out";
  GuestRun run(Module(Committing("unreachable")), execute);
  run.UseOutput(output.borrow());
  EXPECT_EQ(run.Finish().kind, Kind::kTrapped);
}

TEST(OneShot, G19AStopWakesWhoWaitsForAnOperation) {
  const std::string sleep = Do(12, "(i64.const 3600000)");
  for (const bool in_thread : {false, true}) {
    const SketchParts parts =
        in_thread ? SketchParts{.start = "(drop (call $threadspawn (i32.const 0)))" + sleep,
                                .thread = "(local $op i64)" + sleep,
                                .operations = true}
                  : SketchParts{.start = sleep, .operations = true};
    GuestRun run(Module(parts), SketchExecute(kLong));
    run.SendExecute();
    run.parent().Expect<wire::Started>();
    run.parent().Send(wire::Cancel{});
    EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);
    run.parent().ExpectExit(0);
  }
}

TEST(OneShot, G10TheDeadlineStopsLoops) {
  for (const std::string_view name : {"startloop", "loop", "childloop"}) {
    wire::Execute execute = SketchExecute(kLong);
    execute.remaining_ms = 200;
    EXPECT_EQ(RunSketch(SketchFixture(name), execute).kind, Kind::kDeadlineExceeded) << name;
  }
}

// The root returned and waits for its child when the stop comes: it is the stop's doing, not the
// child's failure.
TEST(OneShot, AStopDuringTheJoinIsAStop) {
  GuestRun run(Module(SketchFixture("childloop")), SketchExecute(kLong));
  run.SendExecute();
  run.parent().Expect<wire::Started>();
  run.parent().Send(wire::Cancel{});
  EXPECT_EQ(run.parent().Expect<wire::Terminal>().kind, Kind::kCancelled);
  run.parent().ExpectExit(0);
}

TEST(OneShot, NoFeatureBeyondTheContract) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"simd", "(func (drop (i32x4.splat (i32.const 1))))"},
      {"tail call", "(func $t (return_call $t))"},
      {"second memory", "(memory 1)"},
      {"exceptions", "(tag (param i32))"},
  };
  for (const auto& [what, field] : rows) {
    GuestRun run(Module({.extra = std::string(field)}), SketchExecute());
    run.SendExecute();
    const auto terminal = run.parent().Expect<wire::Terminal>();
    EXPECT_EQ(terminal.kind, Kind::kModuleRefused) << what;
    EXPECT_EQ(terminal.reason, "invalid-module") << what;
  }
}

}  // namespace
}  // namespace bulkhead::wasm
