// Modules of the sketch profile through the whole product: the scenarios of the founding documents
// with their ledger and file-system columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/bulkhead_test.h"
#include "support/proc_view.h"
#include "support/program.h"
#include "support/sketch_module.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class OneShot : public BulkheadTest {
 protected:
  void SetUp() override {
    if (!HaveWat2Wasm()) {
      GTEST_SKIP() << "no wat2wasm";
    }
  }

  static AdmittedModule Sketch(const SketchParts& parts) {
    std::vector<std::uint8_t> bytes = AssembleText(SketchText(parts));
    for (const char c : SketchSections()) {
      bytes.push_back(static_cast<std::uint8_t>(c));
    }
    Result<AdmittedModule> module =
        ModuleSource::FromBytes(bytes, bytes.size() + 1).value().Admit({});
    EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
    return *std::move(module);
  }

  static AdmittedModule Fixture(std::string_view name, int argument = 0) {
    return Sketch(SketchFixture(name, argument));
  }

  static RunRequest SketchRequest() {
    RunRequest request = GuestRequest();
    request.sketch.sketch_bytes = 2U << 20;
    request.sketch.blobs_max = 2;
    request.sketch.pending_reads_max = 2;
    request.sketch.pending_writes_max = 4;
    request.sketch.transfer_bytes = 3U << 20;
    return request;
  }

  static RunRequest WithLongFuel(RunRequest request = SketchRequest()) {
    request.sketch.fuel_total = 1'700'000'000'000;
    request.sketch.fuel_root_slice = 100'000'000'000;
    request.sketch.fuel_child_slice = 100'000'000'000;
    return request;
  }

  RunRequest WithOutput(RunRequest request = SketchRequest()) const {
    request.output = RequestWithOutput("").output;
    return request;
  }
};

TEST_F(OneShot, SketchS1NormalCompletion) {
  const RunReport report = Run(Fixture("empty"), SketchRequest());
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.outcome.completed_as, CompletedAs::kStarted);
}

TEST_F(OneShot, SketchS2ExitZero) {
  const RunReport report = Run(Fixture("exit", 0), SketchRequest());
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.outcome.completed_as, CompletedAs::kExited);
}

TEST_F(OneShot, SketchS3Trap) {
  ExpectOutcome(Run(Fixture("trap"), SketchRequest()), "trapped", kClean);
}

TEST_F(OneShot, SketchS4Fuel) {
  RunRequest request = SketchRequest();
  request.sketch.fuel_total = 30'000;
  request.sketch.fuel_root_slice = 10'000;
  request.sketch.fuel_child_slice = 10'000;
  ExpectOutcome(Run(Fixture("loop"), request), "out-of-fuel", kClean);
}

TEST_F(OneShot, SketchS5CooperativeCancel) {
  ExpectOutcome(RunCancelledInExecute(Fixture("loop"), WithLongFuel()), "cancelled", kPoliteStop);
}

TEST_F(OneShot, SketchS6CooperativeDeadline) {
  RunRequest request = WithLongFuel();
  request.limits.deadline = seconds(1);
  const RunReport report = Run(Fixture("loop"), request);
  ExpectOutcome(report, "deadline-exceeded");
  EXPECT_EQ(report.ledger.forced, 0U);
}

TEST_F(OneShot, SketchS7UncooperativeGuestIsForced) {
  RunRequest request = WithOutput(WithLongFuel());
  request.limits.deadline = seconds(1);
  const RunReport report = Run(Fixture("wait"), request);
  ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAfterGrace);
  EXPECT_GE(report.elapsed, seconds(2));
  EXPECT_LT(report.elapsed, seconds(10));
  ExpectDestinationUntouched();
}

TEST_F(OneShot, SketchS8SequentialStressCarriesNothingOver) {
  for (int round = 0; round < 3; ++round) {
    ExpectOutcome(Run(Fixture("empty"), SketchRequest()), "worker-completed", kClean);
    RunRequest uncooperative = WithLongFuel();
    uncooperative.limits.deadline = seconds(1);
    uncooperative.worker.grace = kShortGrace;
    ExpectOutcome(Run(Fixture("wait"), uncooperative), "forced-containment-deadline-exceeded",
                  kForcedAfterGrace);
    ExpectOutcome(Run(Fixture("trap"), SketchRequest()), "trapped", kClean);
    ExpectOutcome(RunCancelledInExecute(Fixture("loop"), WithLongFuel()), "cancelled", kPoliteStop);
  }
}

TEST_F(OneShot, SketchWithoutItsOutputIsNoSuccess) {
  const RunReport report = Run(Fixture("empty"), WithOutput());
  ExpectOutcome(report, "worker-output-commit", kClean);
  ExpectDestinationUntouched();
}

TEST_F(OneShot, SketchFailedThreadsAreReported) {
  SketchParts parts = SketchFixture("childloop");
  parts.thread = "unreachable";
  const RunReport trapped = Run(Sketch(parts), SketchRequest());
  ExpectOutcome(trapped, "worker-child-failure", kClean);
  ASSERT_TRUE(trapped.outcome.trap);
  EXPECT_EQ(trapped.outcome.trap->thread, 1U);
  EXPECT_FALSE(trapped.outcome.trap->backtrace.empty());
  parts.thread = "(call $proc_exit (i32.const 9))";
  const RunReport exited = Run(Sketch(parts), SketchRequest());
  ExpectOutcome(exited, "child-nonzero-exit", kClean);
  EXPECT_EQ(exited.outcome.guest_exit, 9);
}

TEST_F(OneShot, SketchRejectedThreadsAreCounted) {
  RunRequest request = SketchRequest();
  request.limits.threads_max = 1;
  const RunReport report = Run(Fixture("cap"), request);
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.outcome.completed_as, CompletedAs::kStartedWithThreadRejections);
  EXPECT_EQ(report.outcome.rejections.capacity, 1U);
}

TEST_F(OneShot, SketchThreadsTheSystemDoesNotGiveAreCounted) {
  RunRequest request = SketchRequest();
  request.worker.executable = WorkerPath("has_room_for_one_stack");
  request.worker.check_build_id = false;
  request.limits.stack_bytes = 64U << 20;
  const SketchParts parts = {.start =
                                 "(if (i32.ne (call $threadspawn (i32.const 0)) (i32.const -1))"
                                 "  (then (call $proc_exit (i32.const 7))))"};
  const RunReport report = Run(Sketch(parts), request);
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.outcome.completed_as, CompletedAs::kStartedWithThreadRejections);
  EXPECT_EQ(report.outcome.rejections.capacity, 1U);
}

TEST_F(OneShot, SketchLimitsAreChecked) {
  RunRequest request = SketchRequest();
  request.sketch.fuel_total = 1;
  request.sketch.fuel_root_slice = 1;
  request.sketch.fuel_child_slice = 1;
  ExpectOutcome(Run(Fixture("empty"), request), "worker-invalid-configuration", kNothing);
  request.sketch.fuel_total = 2;
  ExpectOutcome(Run(Fixture("loop"), request), "out-of-fuel", kClean);
  request = SketchRequest();
  request.limits.threads_max = 17;
  ExpectOutcome(Run(Fixture("empty"), request), "worker-invalid-configuration", kNothing);
}

TEST_F(OneShot, SketchesAreGrantedNothingTheyCannotSee) {
  const std::pair<std::string_view, std::function<void(RunRequest&)>> rows[] = {
      {"directories", [&](RunRequest& r) { r.directories.push_back({dir().path(), "/d", false}); }},
      {"directories", [](RunRequest& r) { r.limits.scratch_bytes = 1 << 20; }},
      {"environment", [](RunRequest& r) { r.environment = {"A=B"}; }},
      {"arguments", [](RunRequest& r) { r.arguments = {"guest", "more"}; }},
      {"standard input", [](RunRequest& r) { r.stdin_from = GuestStream::Descriptor(0); }},
  };
  for (const auto& [says, spoil] : rows) {
    RunRequest request = SketchRequest();
    spoil(request);
    const RunReport report = Run(Fixture("empty"), request);
    ExpectOutcome(report, "worker-invalid-configuration", kNothing);
    EXPECT_NE(report.diagnostic.find(says), std::string::npos) << report.diagnostic;
  }
}

// A blob with "guest exact output", sealed and committed.
SketchParts Commits() {
  const auto wait = [](std::string_view call) {
    return std::string("(local.set $op ") + std::string(call) +
           ") (drop (call $operation_yield (local.get $op)))"
           "(local.set $op (call $operation_poll (local.get $op)))";
  };
  SketchParts parts;
  parts.operations = true;
  parts.start = "(call $produce)";
  parts.extra =
      "(data $text \"guest exact output\") (func $produce (local $op i64) (local $blob i64)"
      "(memory.init $text (i32.const 4096) (i32.const 0) (i32.const 18))" +
      wait("(call $operation_submit (i32.const 5) (i64.const 0) (i64.const 0))") +
      "(local.set $blob (i64.shr_u (local.get $op) (i64.const 8)))" +
      wait("(call $operation_submit (i32.const 6) (local.get $blob) (i64.const 0x1200001000))") +
      wait("(call $operation_submit (i32.const 9) (local.get $blob) (i64.const 0))") +
      wait(
          "(call $operation_submit (i32.const 10) (local.get $blob)"
          "  (call $operation_submit (i32.const 11) (i64.const 0) (i64.const 0)))") +
      "(if (i64.ne (i64.and (local.get $op) (i64.const 255)) (i64.const 1)) (then unreachable)))";
  return parts;
}

TEST_F(OneShot, SketchS11TheOutputIsPublished) {
  const RunReport report = Run(Sketch(Commits()), WithOutput());
  ExpectOutcome(report, "worker-completed", kClean);
  ExpectPublished("guest exact output");
}

// The worker stops itself (SIGSTOP) when all is written and the commit is about to be complete.
TEST_F(OneShot, SketchS12ACancelInTheMiddleOfACommitPublishesNothing) {
  RunRequest request = WithOutput();
  request.worker.executable = WorkerPath("stops_before_commit");
  request.worker.check_build_id = false;
  request.worker.grace = kShortGrace;
  RunHandle run = StartRun(runtime(), Sketch(Commits()), request).value();
  // The guest may stop its process before that has said that the guest runs.
  const std::optional<RunEvent> compiling = stages().WaitFor(Stage::kCompile);
  ASSERT_TRUE(compiling);
  EXPECT_TRUE(Eventually(milliseconds(20'000), [&] {
    const std::optional<ProcessView> worker = ViewProcess(compiling->worker_pid);
    return worker && worker->state == 'T';
  }));
  EXPECT_EQ(ReadFile(Destination()), "original");
  run.Cancel();
  const RunReport report = run.Wait();
  CheckAfterRun(report);
  ExpectOutcome(report, "forced-containment-cancelled", kForcedAfterGrace);
  ExpectDestinationUntouched();
}

TEST_F(OneShot, SketchTracesSayWhatWasCalledAndWhatIsLeft) {
  RunRequest request = WithOutput();
  request.worker.executable = WorkerPath("traces_calls");
  request.worker.check_build_id = false;
  const RunReport report = Run(Sketch(Commits()), request);
  ExpectOutcome(report, "worker-completed", kClean);
  std::size_t at = 0;
  constexpr const char* kCounters =
      "counters operations=0 resources=0 blobs=0 timers=0 retained=0 retained-peak=18 outputs=1\n";
  for (const char* called :
       {"operation_submit us=", "op=5\n", "operation_yield us=", "operation_poll us=", "op=6\n",
        "op=9\n", "op=11\n", "op=10\n", "omitted 0\n", kCounters}) {
    at = report.trace.find(called, at);
    ASSERT_NE(at, std::string::npos) << called << " is not in\n" << report.trace;
  }
  const SketchParts busy = {
      .start =
          "(local.set $i (i32.const 600)) (loop $again (call $kernel_yield)"
          "(br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))"};
  request.output.reset();
  const RunReport bounded = Run(Sketch(busy), request);
  ExpectOutcome(bounded, "worker-completed", kClean);
  EXPECT_NE(bounded.trace.find("omitted 88\n"), std::string::npos);
  EXPECT_EQ(std::count(bounded.trace.begin(), bounded.trace.end(), '\n'), 514);
}

TEST_F(OneShot, SketchTracesOfKilledWorkersAreAbsent) {
  RunRequest request = WithLongFuel();
  request.worker.executable = WorkerPath("traces_calls");
  request.worker.check_build_id = false;
  request.worker.grace = kShortGrace;
  request.limits.deadline = seconds(1);  // by then it waits
  const RunReport report = Run(Fixture("wait"), request);
  ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAfterGrace);
  EXPECT_EQ(report.trace, "");
  EXPECT_EQ(Run(Fixture("empty"), SketchRequest()).trace, "");
}

// Nothing grows with the number of runs.
TEST_F(OneShot, SketchN19AThousandRunsLeaveNothingBehind) {
  constexpr std::uint64_t kRuns = 1000;
  const AdmittedModule module = Sketch({.start = "(drop (call $threadspawn (i32.const 0)))"});
  ExpectOutcome(Run(module, SketchRequest()), "worker-completed");
  const auto descriptors = OpenDescriptors();
  const std::size_t threads = ThreadCount();
  for (std::uint64_t round = 0; round < kRuns; ++round) {
    ASSERT_TRUE(Run(module, SketchRequest()).outcome.completed());
  }
  EXPECT_EQ(OpenDescriptors(), descriptors);
  EXPECT_EQ(ThreadCount(), threads);
  EXPECT_EQ(runtime().snapshot().workers.spawned, kRuns + 1);
  EXPECT_EQ(runtime().snapshot().workers.reaped, kRuns + 1);
}

TEST_F(OneShot, SketchModulesAreRefusedBeforeAnyProcess) {
  std::vector<std::uint8_t> bytes = AssembleText(SketchText({}));
  const Result<AdmittedModule> refused =
      ModuleSource::FromBytes(bytes, ModulePolicy::kModuleBytesCeiling).value().Admit({});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, "missing-metadata");
  EXPECT_EQ(runtime().snapshot().workers.spawned, 0U);
}

}  // namespace
}  // namespace bulkhead::test
