// Cancel, deadline, grace and force: sections 2.3 and 2.7 with real processes.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "support/bulkhead_test.h"
#include "support/proc_view.h"
#include "support/program.h"

namespace bulkhead::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Suites are named after the page that numbers the case.
using OneShot = BulkheadTest;
using Case = BulkheadTest;

TEST_F(OneShot, S7UncooperativeGuestIsKilledAfterTheGrace) {
  RunRequest request = RequestWithOutput("ignores_cancel");
  request.limits.deadline = seconds(1);
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAfterGrace);
  EXPECT_EQ(report.stop, StopCause::kDeadlineExceeded);
  EXPECT_TRUE(report.outcome.forced());
  EXPECT_GE(report.elapsed, request.limits.deadline + request.worker.grace);
  EXPECT_LT(report.elapsed, seconds(10));
  EXPECT_EQ(report.worker_exit.find("signal 9"), 0U);
  ExpectDestinationUntouched();
}

TEST_F(OneShot, UncooperativeGuestCancelled) {
  RunRequest request = RequestWithOutput("ignores_cancel");
  request.worker.grace = kShortGrace;
  const RunReport report = RunCancelledInExecute(request);
  ExpectOutcome(report, "forced-containment-cancelled", kForcedAfterGrace);
  EXPECT_EQ(report.stop, StopCause::kCancelled);
  ExpectDestinationUntouched();
}

TEST_F(OneShot, S8SequentialStressCarriesNothingOver) {
  for (int round = 0; round < 3; ++round) {
    ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed", kClean);
    RunRequest uncooperative = RequestFor("ignores_cancel");
    uncooperative.limits.deadline = kShortDeadline;
    uncooperative.worker.grace = kShortGrace;
    ExpectOutcome(Run(uncooperative), "forced-containment-deadline-exceeded", kForcedAfterGrace);
    ExpectOutcome(Run(RequestFor("reports_trapped")), "trapped", kClean);
    ExpectOutcome(RunCancelledInExecute(RequestFor("answers_cancelled")), "cancelled", kPoliteStop);
  }
}

// Section 2.7, rule 1: the latched reason wins over whatever is reported, provided it is legal and
// the exit clean.
TEST_F(OneShot, LatchedReasonWinsOverEveryLegalReport) {
  for (const char* worker : {"answers_cancelled", "answers_deadline", "answers_completed",
                             "answers_trapped", "answers_slowly"}) {
    SCOPED_TRACE(worker);
    const RunReport cancelled = RunCancelledInExecute(RequestWithOutput(worker));
    ExpectOutcome(cancelled, "cancelled", kPoliteStop);
    EXPECT_EQ(cancelled.stop, StopCause::kCancelled);
    ExpectDestinationUntouched();

    RunRequest late = RequestWithOutput(worker);
    late.limits.deadline = kShortDeadline;
    const RunReport exceeded = Run(late);
    ExpectOutcome(exceeded, "deadline-exceeded", kPoliteStop);
    EXPECT_EQ(exceeded.stop, StopCause::kDeadlineExceeded);
    ExpectDestinationUntouched();
  }
}

// Rules 2 and 3: a bad exit and a protocol fault outrank the stop, which stays visible.
TEST_F(OneShot, FaultsOutrankTheLatchedStopAndKeepIt) {
  const std::vector<std::tuple<const char*, const char*, LedgerColumn>> faults = {
      {"answers_then_exit3", "worker-unexpected-exit", {1, 1, 0, 0, 1, 0}},
      {"answers_exit0", "worker-unexpected-exit", {1, 1, 0, 0, 1, 0}},
      {"answers_crash", "worker-unexpected-exit", {1, 1, 0, 0, 1, 0}},
      {"answers_garbage", "worker-protocol", {1, 1, 0, 1, 1, 1}},
  };
  for (const auto& [worker, code, column] : faults) {
    SCOPED_TRACE(worker);
    const RunReport report = RunCancelledInExecute(RequestWithOutput(worker));
    ExpectOutcome(report, code, column);
    EXPECT_EQ(report.stop, StopCause::kCancelled);
    ExpectDestinationUntouched();
  }
}

TEST_F(OneShot, LaterReasonsDoNotRewriteTheFirst) {
  const CancelSource source = *CancelSource::Create();
  RunRequest request = RequestFor("ignores_cancel");
  request.cancel = source.token();
  request.limits.deadline = kShortDeadline;
  request.worker.grace = seconds(1);
  stages().At(Stage::kStop,
              [&](const RunEvent&) { source.Cancel(); });  // the deadline is latched already
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAfterGrace);
  EXPECT_EQ(report.stop, StopCause::kDeadlineExceeded);
}

TEST_F(OneShot, ForceLeavesNoGrace) {
  const CancelSource source = *CancelSource::Create();
  RunRequest request = RequestWithOutput("ignores_cancel");
  request.worker.grace = seconds(60);
  request.force = source.token();
  stages().At(Stage::kExecute, [&](const RunEvent&) { source.Cancel(); });
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-cancelled", kForcedAtOnce);
  EXPECT_LT(report.elapsed, seconds(20));
  ExpectDestinationUntouched();
}

TEST_F(OneShot, ForceCutsARunningGraceShort) {
  const CancelSource polite = *CancelSource::Create();
  const CancelSource force = *CancelSource::Create();
  RunRequest request = RequestFor("ignores_cancel");
  request.worker.grace = seconds(60);
  request.cancel = polite.token();
  request.force = force.token();
  stages().At(Stage::kStop, [&](const RunEvent&) { force.Cancel(); });
  RunHandle run = StartRun(runtime(), EmptyModule(), request).value();
  ASSERT_TRUE(stages().WaitFor(Stage::kExecute));
  polite.Cancel();
  const RunReport report = run.Wait();
  CheckAfterRun(report);
  ExpectOutcome(report, "forced-containment-cancelled", {1, 1, 0, 1, 1, 0});
  EXPECT_LT(report.elapsed, seconds(20));
}

TEST_F(OneShot, WithoutCooperationAStopIsAKill) {
  RunRequest request = RequestFor("answers_cancelled");
  request.limits.cooperative_stop = false;
  request.worker.grace = seconds(60);
  const RunReport report = RunCancelledInExecute(request);
  ExpectOutcome(report, "forced-containment-cancelled", kForcedAtOnce);
  EXPECT_LT(report.elapsed, seconds(20));
}

TEST_F(OneShot, N16DroppingTheHandleCancels) {
  RunRequest request = RequestFor("ignores_cancel");
  GrantAliveLock(request);
  request.worker.grace = kShortGrace;
  {
    const RunHandle run = StartRun(runtime(), EmptyModule(), request).value();
    const std::optional<RunEvent> executing = stages().WaitFor(Stage::kExecute);
    ASSERT_TRUE(executing);
    guard().NoteWorker(executing->worker_pid);
    EXPECT_FALSE(NobodyHoldsAliveLock(dir().path()));
  }
  EXPECT_TRUE(NobodyHoldsAliveLock(dir().path()));
  EXPECT_EQ(ColumnOf(runtime().snapshot().workers), kForcedAfterGrace);
}

TEST_F(OneShot, HandlePollsReadableAtTheEndAndNotBefore) {
  RunRequest request = RequestFor("answers_cancelled");
  RunHandle run = StartRun(runtime(), EmptyModule(), request).value();
  ASSERT_TRUE(stages().WaitFor(Stage::kExecute));
  EXPECT_FALSE(BecomesReadable(run.poll_fd(), milliseconds(0)));
  run.Cancel();
  EXPECT_TRUE(BecomesReadable(run.poll_fd(), seconds(30)));
  RunHandle moved = std::move(run);
  const RunReport report = moved.Wait();
  CheckAfterRun(report);
  ExpectOutcome(report, "cancelled", kPoliteStop);
}

TEST_F(OneShot, CancelAfterTheEndChangesNothing) {
  RunHandle run = StartRun(runtime(), EmptyModule(), RequestFor("honest_echo")).value();
  EXPECT_TRUE(BecomesReadable(run.poll_fd(), seconds(30)));
  run.Cancel();
  run.Cancel();
  const RunReport report = run.Wait();
  CheckAfterRun(report);
  ExpectOutcome(report, "worker-completed", kClean);
}

TEST_F(OneShot, CancelFromAnotherThread) {
  const CancelSource source = *CancelSource::Create();
  RunRequest request = RequestFor("answers_cancelled");
  request.cancel = source.token();
  std::thread canceller([&] {
    EXPECT_TRUE(stages().WaitFor(Stage::kExecute));
    source.Cancel();
  });
  const RunReport report = Run(request);
  canceller.join();
  ExpectOutcome(report, "cancelled", kPoliteStop);
}

const CancelSource* signalled_source = nullptr;

void CancelOnSignal(int /*signal*/) {
  signalled_source->Cancel();
}

TEST_F(OneShot, CancelFromASignalHandler) {
  const CancelSource source = *CancelSource::Create();
  signalled_source = &source;
  struct sigaction action{};
  action.sa_handler = CancelOnSignal;
  struct sigaction old_action{};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old_action), 0);
  RunRequest request = RequestFor("answers_cancelled");
  request.cancel = source.token();
  stages().At(Stage::kExecute, [](const RunEvent&) { raise(SIGUSR1); });
  const RunReport report = Run(request);
  sigaction(SIGUSR1, &old_action, nullptr);
  ExpectOutcome(report, "cancelled", kPoliteStop);
}

// Any deadline, however short, ends in one of the two deadline outcomes with a consistent ledger.
TEST_F(OneShot, TinyDeadlinesEndAsDeadlines) {
  for (int us = 1; us < 40'000; us = us * 3 / 2 + 1) {
    SCOPED_TRACE(us);
    RunRequest request = RequestWithOutput("ignores_cancel");
    request.limits.deadline = std::chrono::microseconds(us);
    request.worker.grace = milliseconds(1);
    const RunReport report = Run(request);
    EXPECT_TRUE(report.outcome.code == OutcomeCode::kDeadlineExceeded ||
                report.outcome.code == OutcomeCode::kForcedContainmentDeadlineExceeded)
        << report.outcome.CodeText() << ": " << report.diagnostic;
    EXPECT_EQ(report.stop, StopCause::kDeadlineExceeded);
    ExpectDestinationUntouched();
  }
}

// Cancelled at every stage in turn: whatever the stage, the result is the stop and nothing is left.
TEST_F(OneShot, CancelAtEveryStageIsAStop) {
  for (const Stage stage :
       {Stage::kLaunch, Stage::kHandshake, Stage::kHandOver, Stage::kCompile, Stage::kExecute}) {
    SCOPED_TRACE(StageName(stage));
    const CancelSource source = *CancelSource::Create();
    RunRequest request = RequestWithOutput("answers_cancelled");
    request.cancel = source.token();
    stages().At(stage, [&](const RunEvent&) { source.Cancel(); });
    const RunReport report = Run(request);
    EXPECT_TRUE(report.outcome.code == OutcomeCode::kCancelled ||
                report.outcome.code == OutcomeCode::kForcedContainmentCancelled)
        << report.outcome.CodeText() << ": " << report.diagnostic;
    EXPECT_EQ(report.stop, StopCause::kCancelled);
    ExpectDestinationUntouched();
  }
}

// G04: when the answer is there, the worker is not, not even as a zombie (checked by Run); fifty
// times.
TEST_F(Case, G04NoWorkerIsLeftWhenTheTimeoutIsReported) {
  for (int round = 0; round < 50; ++round) {
    RunRequest request = RequestFor("ignores_cancel");
    request.limits.deadline = milliseconds(20);
    request.worker.grace = milliseconds(5);
    EXPECT_EQ(Run(request).stop, StopCause::kDeadlineExceeded);
  }
  for (const ProcessView& process : AllProcesses()) {
    EXPECT_NE(process.parent, getpid()) << process.name;
  }
}

// G07: the deadline covers the start-up; the code is not that of a slow guest.
TEST_F(Case, G07SilentWorkersAreBoundedByTheDeadline) {
  RunRequest request = RequestFor("hang_before_hello");
  request.limits.deadline = seconds(1);
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAtOnce);
  EXPECT_EQ(report.stage, Stage::kHandshake);
  EXPECT_LT(report.elapsed, seconds(10));
}

// G39: a stop that comes after the end reaches nobody, whoever has the number now.
TEST_F(Case, G39LateStopsReachNobody) {
  const CancelSource cancel = *CancelSource::Create();
  const CancelSource force = *CancelSource::Create();
  RunRequest request = RequestFor("honest_echo");
  request.cancel = cancel.token();
  request.force = force.token();
  RunHandle run = StartRun(runtime(), EmptyModule(), request).value();
  EXPECT_TRUE(BecomesReadable(run.poll_fd(), seconds(30)));
  cancel.Cancel();
  force.Cancel();
  run.Cancel();
  const RunReport report = run.Wait();
  CheckAfterRun(report);
  ExpectOutcome(report, "worker-completed", kClean);
}

TEST_F(OneShot, NothingIsPendingAtRest) {
  EXPECT_TRUE(runtime().Drain(milliseconds(0)));
  ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed");
  EXPECT_TRUE(runtime().Drain(milliseconds(0)));
  EXPECT_EQ(runtime().snapshot().cleanup_pending, 0U);
  EXPECT_EQ(runtime().snapshot().cleanup_oldest.count(), 0);
}

}  // namespace
}  // namespace bulkhead::test
