// Decision table A: everything that ends a run before a process exists, and the bounds of its
// configuration.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "support/bulkhead_test.h"
#include "support/proc_view.h"

namespace bulkhead::test {
namespace {

// Suites are named after the page that numbers the case.
using OneShot = BulkheadTest;
using Case = BulkheadTest;

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST_F(OneShot, N1CancelledBeforeTheCallSpawnsNothing) {
  const CancelSource source = *CancelSource::Create();
  source.Cancel();
  for (const bool by_force : {false, true}) {
    RunRequest request = RequestWithOutput("honest_echo");
    (by_force ? request.force : request.cancel) = source.token();
    const RunReport report = Run(request);
    ExpectOutcome(report, "cancelled", kNothing);
    EXPECT_EQ(report.stop, StopCause::kCancelled);
    ExpectDestinationUntouched();
  }
}

TEST_F(OneShot, N2WorkersThatCannotStartLeaveNoStaging) {
  RunRequest request = RequestWithOutput("no_such_worker");
  ExpectOutcome(Run(request), "worker-launch", kNothing);
  ExpectDestinationUntouched();

  const TempDir programs;
  request.worker.executable = programs.Write("not_executable", "#!/bin/sh\n");
  chmod(request.worker.executable.c_str(), 0644);
  ExpectOutcome(Run(request), "worker-launch", kNothing);
  ExpectDestinationUntouched();
}

TEST_F(OneShot, N15SecondRunAboveTheLimitIsRefused) {
  RestartRuntime({.active_runs_max = 1, .observer = nullptr});
  RunHandle first = StartRun(runtime(), EmptyModule(), RequestFor("ignores_cancel")).value();
  ASSERT_TRUE(stages().WaitFor(Stage::kExecute));
  EXPECT_EQ(runtime().snapshot().active_runs, 1U);

  ExpectOutcome(Run(RequestFor("honest_echo")), "root-execution-limit-exceeded", kNothing);

  first.Cancel();
  const RunReport stopped = first.Wait();
  CheckAfterRun(stopped);
  ExpectOutcome(stopped, "forced-containment-cancelled", kForcedAfterGrace);
  ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed", kClean);
}

TEST_F(OneShot, U20ARunHoldsOnePermitAndOneWorkerWhileItLasts) {
  EXPECT_TRUE(LedgerFaults(runtime().snapshot()).empty());
  std::optional<Snapshot> during;
  stages().At(Stage::kExecute, [&](const RunEvent&) { during = runtime().snapshot(); });
  ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed");
  ASSERT_TRUE(during);
  EXPECT_EQ(during->active_runs, 1U);
  EXPECT_EQ(during->workers.live_workers, 1U);
  EXPECT_EQ(during->workers.live_protocol_tasks, 1U);
  EXPECT_EQ(during->workers.pending_root_leases, 1U);
  EXPECT_EQ(during->workers.spawned, 1U);
  EXPECT_EQ(during->workers.reaped, 0U);
  EXPECT_EQ(during->cleanup_pending, 0U);
  EXPECT_TRUE(LedgerFaults(runtime().snapshot()).empty());
}

TEST_F(OneShot, U18TheRuntimeAddsUpWhatTheRunsCount) {
  ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed", kClean);
  ExpectOutcome(Run(RequestFor("garbage_magic")), "worker-protocol", kProtocolForced);
  RunRequest stopped = RequestFor("ignores_cancel");
  stopped.limits.deadline = kShortDeadline;
  stopped.worker.grace = kShortGrace;
  ExpectOutcome(Run(stopped), "forced-containment-deadline-exceeded", kForcedAfterGrace);
  EXPECT_EQ(ColumnOf(runtime().snapshot().workers), (LedgerColumn{3, 1, 1, 2, 3, 1}));
}

// Row A4: the deadline covers what comes before the worker.
TEST_F(OneShot, A4DeadlinePassedBeforeTheLaunch) {
  RunRequest request = RequestWithOutput("honest_echo");
  request.limits.deadline = nanoseconds(1);
  const RunReport report = Run(request);
  ExpectOutcome(report, "deadline-exceeded", kNothing);
  EXPECT_EQ(report.stop, StopCause::kDeadlineExceeded);
  ExpectDestinationUntouched();
}

TEST_F(OneShot, N18CancelBeatsTheDeadlineInTheSameInstant) {
  const CancelSource source = *CancelSource::Create();
  RunRequest request = RequestFor("ignores_cancel");
  request.cancel = source.token();
  request.limits.deadline = kShortDeadline;
  // Both are true before the run looks again.
  stages().At(Stage::kExecute, [&](const RunEvent&) {
    source.Cancel();
    Eventually(2 * kShortDeadline, [] { return false; });
  });
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-cancelled", kForcedAfterGrace);
  EXPECT_EQ(report.stop, StopCause::kCancelled);
}

TEST_F(OneShot, A6GrantsThatCannotBeStagedAreRefused) {
  RunRequest request = RequestFor("honest_echo");
  request.output = OutputGrant{};
  for (const std::string& path :
       {dir().Path("missing/destination"), dir().path() + "/../destination", dir().path() + "/..",
        std::string("/")}) {
    request.output->path = path;
    ExpectOutcome(Run(request), "worker-output-grant", kNothing);
  }
  request.output->path = dir().Write("file", "") + "/destination";
  ExpectOutcome(Run(request), "worker-output-grant", kNothing);
}

// Section 2.1: the rule for the destination's form is a rule of configuration.
TEST_F(OneShot, RelativeDestinationsAreRefused) {
  RunRequest request = RequestFor("honest_echo");
  request.output = OutputGrant{};
  request.output->path = "relative/destination";
  const RunReport report = Run(request);
  EXPECT_TRUE(report.outcome.code == OutcomeCode::kWorkerInvalidConfiguration ||
              report.outcome.code == OutcomeCode::kWorkerOutputGrant)
      << report.outcome.CodeText();
  EXPECT_EQ(ColumnOf(report.ledger), kNothing);
}

using ChangeWorker = std::function<void(WorkerConfig&)>;

TEST_F(OneShot, U9WorkerConfigurationIsValidated) {
  const std::vector<std::pair<const char*, ChangeWorker>> illegal = {
      {"empty executable", [](WorkerConfig& w) { w.executable.clear(); }},
      {"relative executable", [](WorkerConfig& w) { w.executable = "bin/worker"; }},
      {"executable with NUL", [](WorkerConfig& w) { w.executable += std::string("\0x", 2); }},
      {"zero grace", [](WorkerConfig& w) { w.grace = nanoseconds(0); }},
      {"negative grace", [](WorkerConfig& w) { w.grace = nanoseconds(-1); }},
      {"grace above 60 s", [](WorkerConfig& w) { w.grace = seconds(60) + nanoseconds(1); }},
      {"relative working directory", [](WorkerConfig& w) { w.working_directory = "tmp"; }},
      {"empty working directory", [](WorkerConfig& w) { w.working_directory.clear(); }},
      {"short digest", [](WorkerConfig& w) { w.executable_sha256 = "abc"; }},
      {"digest that is not hex",
       [](WorkerConfig& w) { w.executable_sha256 = std::string(64, 'g'); }},
  };
  for (const auto& [what, change] : illegal) {
    SCOPED_TRACE(what);
    RunRequest request = RequestFor("honest_echo");
    change(request.worker);
    EXPECT_FALSE(request.worker.Validate().has_value());
    const RunReport report = Run(request);
    ExpectOutcome(report, "worker-invalid-configuration", kNothing);
    EXPECT_FALSE(report.diagnostic.empty());
  }
  const std::vector<ChangeWorker> legal = {
      [](WorkerConfig& w) { w.grace = milliseconds(1); },
      [](WorkerConfig& w) { w.grace = seconds(60); },
  };
  for (const ChangeWorker& change : legal) {
    RunRequest request = RequestFor("honest_echo");
    change(request.worker);
    EXPECT_TRUE(request.worker.Validate().has_value());
    ExpectOutcome(Run(request), "worker-completed", kClean);
  }
}

TEST_F(OneShot, LimitsAreValidated) {
  const std::vector<std::pair<const char*, std::function<void(RunLimits&)>>> illegal = {
      {"zero deadline", [](RunLimits& l) { l.deadline = nanoseconds(0); }},
      {"negative deadline", [](RunLimits& l) { l.deadline = nanoseconds(-1); }},
      {"zero CPU time", [](RunLimits& l) { l.cpu_time = nanoseconds(0); }},
      {"zero fuel", [](RunLimits& l) { l.fuel = 0; }},
      {"zero compile time", [](RunLimits& l) { l.compile_time = nanoseconds(0); }},
      {"no threads", [](RunLimits& l) { l.threads_max = 0; }},
      {"too many threads", [](RunLimits& l) { l.threads_max = 1025; }},
      {"small stack", [](RunLimits& l) { l.stack_bytes = (64U << 10) - 1; }},
      {"large stack", [](RunLimits& l) { l.stack_bytes = (64U << 20) + 1; }},
  };
  for (const auto& [what, change] : illegal) {
    SCOPED_TRACE(what);
    RunRequest request = RequestFor("honest_echo");
    change(request.limits);
    EXPECT_FALSE(request.limits.Validate().has_value());
    ExpectOutcome(Run(request), "worker-invalid-configuration", kNothing);
  }
  RunRequest request = RequestFor("honest_echo");
  request.limits.deadline = nanoseconds::max();
  ExpectOutcome(Run(request), "worker-completed", kClean);
}

// G36: refused before anything is started, with the limit in the text.
TEST_F(Case, G36TooLargeArgumentsAreRefusedBeforeTheSpawn) {
  const auto expect_refused = [&](const std::function<void(RunRequest&)>& change) {
    RunRequest request = RequestFor("honest_echo");
    change(request);
    const RunReport report = Run(request);
    ExpectOutcome(report, "worker-invalid-configuration", kNothing);
    EXPECT_NE(report.diagnostic.find_first_of("0123456789"), std::string::npos)
        << report.diagnostic;
    EXPECT_LE(report.diagnostic.size(), 1024U);
  };
  expect_refused([](RunRequest& r) { r.arguments.emplace_back((1U << 20) + 1, 'a'); });
  expect_refused([](RunRequest& r) { r.arguments.assign(4, std::string(1U << 20, 'a')); });
  expect_refused([](RunRequest& r) { r.arguments.assign(5000, "a"); });
  expect_refused([](RunRequest& r) { r.environment.assign(5000, "K=V"); });
  expect_refused(
      [](RunRequest& r) { r.environment.push_back("BIG=" + std::string(1U << 20, 'a')); });
  expect_refused([](RunRequest& r) { r.directories.assign(33, {"/tmp", "/data", false}); });
}

TEST_F(Case, G35NulIsRefusedEverywhere) {
  const std::string nul("a\0b", 3);
  const std::vector<std::function<void(RunRequest&)>> changes = {
      [&](RunRequest& r) { r.arguments.push_back(nul); },
      [&](RunRequest& r) { r.environment.push_back("K=" + nul); },
      [&](RunRequest& r) { r.directories.push_back({"/tmp/" + nul, "/data", false}); },
      [&](RunRequest& r) { r.directories.push_back({"/tmp", "/" + nul, false}); },
      [&](RunRequest& r) { r.worker.working_directory = "/" + nul; },
  };
  for (const auto& change : changes) {
    RunRequest request = RequestFor("honest_echo");
    change(request);
    ExpectOutcome(Run(request), "worker-invalid-configuration", kNothing);
  }
  RunRequest request = RequestFor("honest_echo");
  request.output = OutputGrant{};
  request.output->path = dir().Path(nul);
  const RunReport report = Run(request);
  EXPECT_EQ(report.outcome.kind(), OutcomeKind::kFailure);
  EXPECT_EQ(ColumnOf(report.ledger), kNothing);
  EXPECT_TRUE(dir().Entries().empty());
}

TEST_F(OneShot, GrantsOfDirectoriesThatDoNotExistNameThem) {
  RunRequest request = RequestFor("honest_echo");
  request.directories.push_back({dir().Path("missing"), "/data", false});
  const RunReport report = Run(request);
  EXPECT_EQ(report.outcome.kind(), OutcomeKind::kFailure);
  EXPECT_EQ(ColumnOf(report.ledger), kNothing);
  EXPECT_NE(report.diagnostic.find("missing"), std::string::npos) << report.diagnostic;
}

// The 512 MiB ceiling is judged by the size alone: the file is a hole.
TEST_F(OneShot, U17ModulesAboveTheTransportCeilingAreRefusedUnread) {
  const std::string path = dir().Write("module.wasm", "");
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(ModulePolicy::kModuleBytesCeiling + 1)), 0);
  const Result<ModuleSource> source =
      ModuleSource::FromFile(path, ModulePolicy::kModuleBytesCeiling);
  ASSERT_FALSE(source.has_value());
  EXPECT_EQ(source.error().code, ErrorCode::kModuleRefused);
  EXPECT_EQ(source.error().reason, "module-too-large");
  EXPECT_NE(source.error().message.find("536870913"), std::string::npos) << source.error().message;
  EXPECT_NE(source.error().message.find("536870912"), std::string::npos) << source.error().message;
}

TEST_F(OneShot, U19CopiesOfAModuleShareItsBytes) {
  const AdmittedModule module = EmptyModule();
  const AdmittedModule copy = module;
  EXPECT_EQ(copy.bytes().data(), module.bytes().data());
  EXPECT_EQ(copy.bytes().size(), module.size_bytes());
  EXPECT_EQ(copy.descriptor(), module.descriptor());
  EXPECT_EQ(copy.sha256(), module.sha256());
  EXPECT_EQ(copy.sha256().size(), 64U);
}

}  // namespace
}  // namespace bulkhead::test
