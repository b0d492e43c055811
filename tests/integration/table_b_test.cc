// Decision table B with real processes: what a worker does, and what must come of it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "support/bulkhead_test.h"
#include "support/proc_view.h"
#include "support/program.h"

namespace bulkhead::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Suites are named after the page that numbers the case.
class OneShot : public BulkheadTest {
 protected:
  void ExpectDescendantGoneAfterCompletion(std::string_view worker) {
    SCOPED_TRACE(worker);
    RunRequest request = RequestFor(worker);
    GrantAliveLock(request);
    request.stdout_to = GuestStream::Capture(100);  // held open by the descendant as well
    const RunReport report = Run(request);
    ExpectOutcome(report, "worker-completed", kClean);
    EXPECT_TRUE(NobodyHoldsAliveLock(dir().path())) << "a descendant outlived the run";
    EXPECT_LT(report.elapsed, seconds(5));
  }

  void ExpectDescendantGoneAfterStop(std::string_view worker) {
    SCOPED_TRACE(worker);
    RunRequest request = RequestFor(worker);
    GrantAliveLock(request);
    request.stdout_to = GuestStream::Capture(100);
    request.limits.deadline = seconds(1);
    request.worker.grace = milliseconds(500);
    const RunReport report = Run(request);
    ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAfterGrace);
    EXPECT_TRUE(NobodyHoldsAliveLock(dir().path())) << "a descendant outlived the run";
    EXPECT_LT(report.elapsed, seconds(10));
  }
};

using Case = OneShot;

TEST_F(OneShot, HonestWorkerCompletes) {
  const RunReport report = Run(RequestFor("honest_echo"));
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.outcome.completed_as, CompletedAs::kStarted);
  EXPECT_EQ(report.worker_exit, "exit 0");
  EXPECT_EQ(report.stop, StopCause::kNone);
  EXPECT_EQ(report.masked_code, "");
}

TEST_F(OneShot, StagesAreReportedInOrder) {
  ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed");
  std::vector<Stage> seen;
  for (const RunEvent& event : stages().events()) {
    seen.push_back(event.stage);
    EXPECT_NE(event.run_id, 0U);
  }
  const std::vector<Stage> expected = {Stage::kLaunch,  Stage::kHandshake, Stage::kHandOver,
                                       Stage::kCompile, Stage::kExecute,   Stage::kReap,
                                       Stage::kDone};
  EXPECT_EQ(seen, expected);
}

TEST_F(OneShot, N3NoAnswerToHelloIsKilledWithoutACancel) {
  const CancelSource source = *CancelSource::Create();
  RunRequest request = RequestWithOutput("hang_before_hello");
  request.cancel = source.token();
  request.worker.grace = seconds(60);  // would show if anybody waited for it
  stages().At(Stage::kHandshake, [&](const RunEvent&) { source.Cancel(); });
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-cancelled", kForcedAtOnce);
  EXPECT_LT(report.elapsed, seconds(20));
  EXPECT_EQ(report.worker_exit.substr(0, 8), "signal 9");
  ExpectDestinationUntouched();
}

TEST_F(OneShot, N4NoConfirmationOfTheModuleIsKilledWithoutACancel) {
  RunRequest request = RequestWithOutput("hang_before_ready");
  request.limits.deadline = kShortDeadline;
  request.worker.grace = seconds(60);
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAtOnce);
  EXPECT_EQ(report.stop, StopCause::kDeadlineExceeded);
  EXPECT_GE(report.elapsed, kShortDeadline);
  EXPECT_LT(report.elapsed, seconds(20));
  ExpectDestinationUntouched();
}

// From Ready on a stop is polite, also while the worker compiles.
TEST_F(OneShot, B13StopWhileCompilingGetsItsGrace) {
  RunRequest request = RequestFor("hang_compiling");
  request.limits.deadline = kShortDeadline;
  request.worker.grace = kShortGrace;
  ExpectOutcome(Run(request), "forced-containment-deadline-exceeded", kForcedAfterGrace);
}

TEST_F(OneShot, N5ExitWithoutAReportIsUnexpected) {
  for (const char* worker :
       {"exit_at_once", "exit_after_hello", "exit_after_ready", "exit_after_started"}) {
    SCOPED_TRACE(worker);
    const RunReport report = Run(RequestWithOutput(worker));
    ExpectOutcome(report, "worker-unexpected-exit", kClean);
    EXPECT_EQ(report.worker_exit, "exit 0");
    EXPECT_LT(report.elapsed, seconds(20));
    ExpectDestinationUntouched();
  }
}

// G10: a worker's own 137 is neither a kill nor a stop.
TEST_F(Case, G10ExitCodeOfTheWorkerIsNotMistakenForASignal) {
  const RunReport report = Run(RequestFor("exit_137_after_started"));
  ExpectOutcome(report, "worker-unexpected-exit", kClean);
  EXPECT_EQ(report.worker_exit, "exit 137");
}

TEST_F(Case, G06CrashesAreReportedWithSignalAndLastWords) {
  const std::vector<std::pair<const char*, const char*>> crashes = {
      {"crash_segv", "signal 11"}, {"crash_abort", "signal 6"}, {"crash_recurse", "signal 11"}};
  for (const auto& [worker, signal] : crashes) {
    SCOPED_TRACE(worker);
    const RunReport report = Run(RequestWithOutput(worker));
    ExpectOutcome(report, "worker-unexpected-exit", kClean);
    EXPECT_EQ(report.worker_exit.find(signal), 0U) << report.worker_exit;
    EXPECT_NE(report.worker_stderr_tail.find("last words"), std::string::npos);
    EXPECT_NE(report.diagnostic.find(signal), std::string::npos) << report.diagnostic;
    ExpectDestinationUntouched();
    ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed", kClean);
  }
}

TEST_F(OneShot, N6ClosedChannelOfALivingWorkerIsAProtocolFault) {
  const RunReport report = Run(RequestWithOutput("close_channel_keep_running"));
  ExpectOutcome(report, "worker-protocol", kProtocolForced);
  EXPECT_GE(report.elapsed, milliseconds(1000));
  EXPECT_LT(report.elapsed, seconds(20));
  ExpectDestinationUntouched();
}

TEST_F(OneShot, N7BadExitOutranksTheReport) {
  const std::vector<std::pair<const char*, const char*>> exits = {
      {"completed_then_exit3", "exit 3"}, {"completed_then_segv", "signal 11"}};
  for (const auto& [worker, exit] : exits) {
    SCOPED_TRACE(worker);
    const RunReport report = Run(RequestWithOutput(worker));
    ExpectOutcome(report, "worker-unexpected-exit", kClean);
    EXPECT_EQ(report.worker_exit.find(exit), 0U) << report.worker_exit;
    ExpectDestinationUntouched();
  }
}

// The parent is held up right after Ready until the worker is a zombie: the terminal in the socket
// still counts.
TEST_F(OneShot, N8AReportDeliveredBeforeTheExitIsNotLost) {
  bool exited = false;
  stages().At(Stage::kCompile, [&](const RunEvent& event) {
    const UniqueFd worker(static_cast<int>(syscall(SYS_pidfd_open, event.worker_pid, 0)));
    // In a pid namespace its init may have reaped it already.
    exited = worker.valid() ? BecomesReadable(worker.get(), seconds(30)) : errno == ESRCH;
  });
  ExpectOutcome(Run(RequestFor("completes_fast")), "worker-completed", kClean);
  EXPECT_TRUE(exited);
}

TEST_F(OneShot, N8FastWorkersAreNeverMisjudged) {
  for (int round = 0; round < 100; ++round) {
    ExpectOutcome(Run(RequestFor("completes_fast")), "worker-completed", kClean);
  }
}

TEST_F(OneShot, N9LingeringAfterTheReportHasItsOwnCode) {
  const RunReport report = Run(RequestWithOutput("lingers_after_terminal"));
  ExpectOutcome(report, "worker-lingered", kForcedAtOnce);
  EXPECT_GE(report.elapsed, seconds(5));
  EXPECT_LT(report.elapsed, seconds(30));
  ExpectDestinationUntouched();
}

// The watchdog's time comes before the five seconds are over: it is the same fault.
TEST_F(OneShot, N9LingeringPastTheDeadlineHasThatCodeToo) {
  RunRequest request = RequestWithOutput("lingers_after_terminal");
  request.limits.deadline = kShortDeadline;
  request.worker.grace = milliseconds(1);
  const RunReport report = Run(request);
  if (report.stop == StopCause::kNone) {  // else the machine was too busy for the report to be made
    ExpectOutcome(report, "worker-lingered", kForcedAtOnce);
  }
  ExpectDestinationUntouched();
}

const std::vector<const char*> kViolations = {
    "garbage_magic",
    "garbage_version",
    "garbage_kind",
    "garbage_flags",
    "garbage_request",
    "garbage_generation",
    "garbage_request_zero",
    "huge_announcement",
    "upstream_execute",
    "trailing_byte",
    "short_body",
    "ready_before_hello_ack",
    "second_hello_ack",
    "second_ready",
    "terminal_before_ready",
    "terminal_before_hello_ack",
    "started_before_ready",
    "second_started",
    "trace_before_started",
    "second_trace",
    "message_flood",
};

TEST_F(OneShot, N10EveryViolationIsAProtocolFault) {
  for (const char* worker : kViolations) {
    SCOPED_TRACE(worker);
    const RunReport report = Run(RequestWithOutput(worker));
    ExpectOutcome(report, "worker-protocol", kProtocolForced);
    EXPECT_FALSE(report.diagnostic.empty());
    ExpectDestinationUntouched();
  }
}

// A violation is not waited for: the second that a lost pipe is given does not pass. The best of a
// few tries counts, so that a busy machine does not matter.
TEST_F(OneShot, N10ViolationsEndTheRunAtOnce) {
  for (const char* worker : kViolations) {
    SCOPED_TRACE(worker);
    auto best = std::chrono::microseconds::max();
    for (int round = 0; round < 5 && best >= milliseconds(900); ++round) {
      best = std::min(best, Run(RequestFor(worker)).elapsed);
    }
    EXPECT_LT(best, milliseconds(900));
  }
}

TEST_F(OneShot, U11NothingIsReadAfterTheTerminal) {
  ExpectOutcome(Run(RequestFor("talks_after_terminal")), "worker-completed", kClean);
}

TEST_F(OneShot, N11HeldResourcesMakeTheReportInvalid) {
  for (const char* worker : {"counter_roots", "counter_stores", "counter_instances",
                             "counter_registrations", "counter_threads"}) {
    SCOPED_TRACE(worker);
    ExpectOutcome(Run(RequestFor(worker)), "worker-protocol", kProtocolForced);
  }
}

TEST_F(OneShot, N12ReportedProtocolFailureIsReapedCleanly) {
  ExpectOutcome(Run(RequestWithOutput("reports_protocol_failure")), "worker-protocol",
                {1, 0, 0, 0, 1, 1});
  ExpectDestinationUntouched();
}

TEST_F(OneShot, B8ReportedKindsMapToTheirOutcomes) {
  const std::vector<std::pair<const char*, const char*>> mapping = {
      {"reports_cancelled", "cancelled"},
      {"reports_deadline", "deadline-exceeded"},
      {"reports_out_of_fuel", "out-of-fuel"},
      {"reports_trapped", "trapped"},
      {"reports_nonzero_exit", "nonzero-exit"},
      {"reports_child_exit", "child-nonzero-exit"},
      {"reports_child_failure", "worker-child-failure"},
      {"reports_worker_failure", "worker-reported-failure"},
      {"reports_forced_containment", "worker-forced-containment"},
      {"reports_module_refused", "module-refused/link-failed"},
      {"reports_memory_limit", "memory-limit"},
      {"reports_compile_limit", "compile-limit"},
      {"reports_output_limit", "output-limit"},
  };
  for (const auto& [worker, code] : mapping) {
    SCOPED_TRACE(worker);
    ExpectOutcome(Run(RequestWithOutput(worker)), code, kClean);
    ExpectDestinationUntouched();
  }
}

TEST_F(OneShot, B8CompletionsKeepHowTheGuestEnded) {
  const std::vector<std::pair<const char*, CompletedAs>> completions = {
      {"reports_started", CompletedAs::kStarted},
      {"reports_exited", CompletedAs::kExited},
      {"reports_started_rejections", CompletedAs::kStartedWithThreadRejections},
      {"reports_exited_rejections", CompletedAs::kExitedWithThreadRejections},
  };
  for (const auto& [worker, as] : completions) {
    SCOPED_TRACE(worker);
    const RunReport report = Run(RequestFor(worker));
    ExpectOutcome(report, "worker-completed", kClean);
    EXPECT_EQ(report.outcome.completed_as, as);
    const bool rejections = as == CompletedAs::kStartedWithThreadRejections ||
                            as == CompletedAs::kExitedWithThreadRejections;
    EXPECT_EQ(report.outcome.rejections,
              rejections ? (ThreadRejections{1, 2, 3, 4}) : ThreadRejections{});
  }
}

TEST_F(OneShot, B8DetailsOfTheReportSurvive) {
  const RunReport exited = Run(RequestFor("reports_nonzero_exit"));
  EXPECT_EQ(exited.outcome.guest_exit, 137);
  EXPECT_EQ(Run(RequestFor("reports_child_exit")).outcome.guest_exit, -9);
  const RunReport trapped = Run(RequestFor("reports_trapped"));
  ASSERT_TRUE(trapped.outcome.trap);
  EXPECT_EQ(trapped.outcome.trap->code, "unreachable");
  EXPECT_EQ(trapped.outcome.trap->message, "wasm trap: unreachable");
  EXPECT_EQ(trapped.outcome.trap->thread, 5U);
  EXPECT_EQ(trapped.outcome.trap->backtrace,
            (std::vector<std::string>{"0x10 inner", "0x20 outer"}));
  EXPECT_EQ(trapped.diagnostic, "the guest trapped");
}

TEST_F(OneShot, N13DescendantsOfAFinishedWorkerDie) {
  ExpectDescendantGoneAfterCompletion("forks_child");
}

TEST_F(OneShot, N13EscapedDescendantsOfAFinishedWorkerDie) {
  if (!EscapesAreCaught()) {
    GTEST_SKIP() << "missing: a pid namespace or a writable cgroup";
  }
  ExpectDescendantGoneAfterCompletion("forks_setsid");
  ExpectDescendantGoneAfterCompletion("forks_setsid_twice");
}

TEST_F(Case, G01DescendantsDoNotExtendAStop) {
  ExpectDescendantGoneAfterStop("abandons_child");
}

TEST_F(Case, G01EscapedDescendantsDoNotExtendAStop) {
  if (!EscapesAreCaught()) {
    GTEST_SKIP() << "missing: a pid namespace or a writable cgroup";
  }
  ExpectDescendantGoneAfterStop("abandons_setsid_twice");
  ExpectDescendantGoneAfterStop("abandons_many_setsid");
}

TEST_F(OneShot, WrongNonceIsAProtocolFault) {
  const RunReport report = Run(RequestFor("wrong_nonce"));
  ExpectOutcome(report, "worker-protocol", kProtocolForced);
}

TEST_F(OneShot, WrongBuildIsAProtocolFaultUnlessAccepted) {
  RunRequest request = RequestFor("wrong_build");
  const RunReport refused = Run(request);
  ExpectOutcome(refused, "worker-protocol", kProtocolForced);
  EXPECT_NE(refused.diagnostic.find("another build"), std::string::npos) << refused.diagnostic;
  request.worker.check_build_id = false;
  ExpectOutcome(Run(request), "worker-completed", kClean);
}

TEST_F(OneShot, FailedLockDownIsALaunchFailure) {
  const RunReport report = Run(RequestWithOutput("lock_down_failed"));
  ExpectOutcome(report, "worker-launch", kForcedAtOnce);
  EXPECT_NE(report.diagnostic.find("seccomp"), std::string::npos) << report.diagnostic;
  EXPECT_NE(report.diagnostic.find("Function not implemented"), std::string::npos)
      << report.diagnostic;
  ExpectDestinationUntouched();
}

TEST_F(Case, G03FloodOnStderrNeitherBlocksNorGrows) {
  const RunReport report = Run(RequestFor("floods_stderr"));
  ExpectOutcome(report, "worker-completed", kClean);
  const std::string& tail = report.worker_stderr_tail;
  EXPECT_EQ(tail.find("[... "), 0U) << tail.substr(0, 40);
  EXPECT_TRUE(tail.ends_with("the very last line\n"));
  EXPECT_EQ(tail.find('\x1B'), std::string::npos);
  EXPECT_EQ(ToValidUtf8(tail), tail);
  EXPECT_LE(tail.size(), 5 * (64U << 10));  // every byte may need four to be shown
}

TEST_F(Case, G20DyingInsideAFrameReportsTheDeath) {
  const RunReport killed = Run(RequestFor("half_frame_sigkill"));
  ExpectOutcome(killed, "worker-unexpected-exit", kClean);
  EXPECT_EQ(killed.worker_exit.find("signal 9"), 0U);
  const RunReport exited = Run(RequestFor("half_frame_exit3"));
  ExpectOutcome(exited, "worker-unexpected-exit", kClean);
  EXPECT_EQ(exited.worker_exit, "exit 3");

  RunRequest silent = RequestFor("half_frame_silent");
  silent.limits.deadline = kShortDeadline;
  silent.worker.grace = kShortGrace;
  ExpectOutcome(Run(silent), "forced-containment-deadline-exceeded", kForcedAfterGrace);

  ExpectOutcome(Run(RequestFor("half_frame_close")), "worker-protocol", kProtocolForced);
  ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed", kClean);
}

// The worker says how much it got: the cap, the engine's fixed overhead and the stack, and its own
// few pages.
TEST_F(OneShot, N14MemoryOfTheWorkerIsBounded) {
  RunRequest request = RequestFor("eats_memory");
  request.limits.memory_bytes = 64U << 20;
  const RunReport report = Run(request);
  EXPECT_FALSE(report.outcome.completed());
  EXPECT_EQ(report.worker_exit, "exit 9") << report.outcome.CodeText();
  constexpr std::string_view kGot = "got ";
  const std::size_t got = report.worker_stderr_tail.find(kGot);
  ASSERT_NE(got, std::string::npos) << report.worker_stderr_tail;
  const int got_mib = std::stoi(report.worker_stderr_tail.substr(got + kGot.size()));
  EXPECT_GE(got_mib, 64);
  EXPECT_LE(got_mib, 192);
}

TEST_F(OneShot, N14ForksOfTheWorkerAreCleanedUp) {
  if (!EscapesAreCaught()) {
    GTEST_SKIP() << "missing: a pid namespace or a writable cgroup";
  }
  RunRequest request = RequestFor("abandons_many_setsid");
  GrantAliveLock(request);
  const CancelSource source = *CancelSource::Create();
  request.force = source.token();
  stages().At(Stage::kExecute, [&](const RunEvent&) { source.Cancel(); });
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-cancelled");
  EXPECT_TRUE(NobodyHoldsAliveLock(dir().path()));
}

TEST_F(OneShot, WorkersInAnotherLanguageNeedOnlyTheProtocol) {
  if (access("/usr/bin/python3", X_OK) != 0) {
    GTEST_SKIP() << "no /usr/bin/python3";
  }
  RunRequest request = RequestWithOutput("python_worker.py");
  request.worker.check_build_id = false;
  request.arguments = {"guest", "zwei W\xC3\xB6rter"};
  request.stdout_to = GuestStream::Capture(1000);
  const RunReport report = Run(request);
  // Python is no program of ours: it has not created "its" file in the eyes of the report unless it
  // said so.
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.stdout_captured, "guest\nzwei W\xC3\xB6rter\n");
  const AdmittedModule module = EmptyModule();
  ExpectPublished({reinterpret_cast<const char*>(module.bytes().data()), module.bytes().size()});
}

// N19 in small: nothing grows with the number of runs.
TEST_F(OneShot, N19ManyRunsLeaveNothingBehind) {
  ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed");
  const auto descriptors = OpenDescriptors();
  const std::size_t threads = ThreadCount();
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(
        Run(RequestFor(round % 2 == 0 ? "honest_echo" : "exit_after_ready")).ledger.reaped == 1);
  }
  EXPECT_EQ(OpenDescriptors(), descriptors);
  EXPECT_EQ(ThreadCount(), threads);
  EXPECT_EQ(runtime().snapshot().workers.spawned, 201U);
  EXPECT_EQ(runtime().snapshot().workers.reaped, 201U);
}

}  // namespace
}  // namespace bulkhead::test
