// The rows of docs/outcomes.md, in the same order.
#include "supervise/classify.h"

#include <gtest/gtest.h>

#include <csignal>

namespace bulkhead::supervise {
namespace {

using process::ExitStatus;
using Kind = wire::Terminal::Kind;

wire::Terminal Report(Kind kind) {
  wire::Terminal terminal;
  terminal.kind = kind;
  if (kind == Kind::kCompleted) {
    terminal.completed_as = wire::Terminal::CompletedAs::kStarted;
  }
  if (kind == Kind::kNonzeroExit) {
    terminal.status = 7;
  }
  return terminal;
}

Facts Reported(Kind kind, ExitStatus exit = {ExitStatus::How::kExited, 0}) {
  Facts facts;
  facts.verdict = Verdict::kReported;
  facts.terminal = Report(kind);
  facts.exit = exit;
  return facts;
}

Facts Died(int signal) {
  Facts facts;
  facts.verdict = Verdict::kUnexpectedExit;
  facts.exit = ExitStatus{ExitStatus::How::kSignalled, signal};
  return facts;
}

struct Mapping {
  Kind kind;
  OutcomeCode code;
};

constexpr Mapping kMappings[] = {
    {Kind::kCompleted, OutcomeCode::kWorkerCompleted},
    {Kind::kCancelled, OutcomeCode::kCancelled},
    {Kind::kDeadlineExceeded, OutcomeCode::kDeadlineExceeded},
    {Kind::kOutOfFuel, OutcomeCode::kOutOfFuel},
    {Kind::kTrapped, OutcomeCode::kTrapped},
    {Kind::kNonzeroExit, OutcomeCode::kNonzeroExit},
    {Kind::kChildFailure, OutcomeCode::kWorkerChildFailure},
    {Kind::kProtocolFailure, OutcomeCode::kWorkerProtocol},
    {Kind::kWorkerFailure, OutcomeCode::kWorkerReportedFailure},
    {Kind::kCodeRefused, OutcomeCode::kWorkerReportedFailure},
    {Kind::kForcedContainment, OutcomeCode::kWorkerForcedContainment},
    {Kind::kModuleRefused, OutcomeCode::kModuleRefused},
};

TEST(OneShot, W8EveryReportedKindMapsToItsOutcome) {
  for (const Mapping& row : kMappings) {
    EXPECT_EQ(Classify(Reported(row.kind)).code, row.code) << OutcomeCodeName(row.code);
  }
  Facts child = Reported(Kind::kChildFailure);
  child.terminal->status = 9;
  EXPECT_EQ(Classify(child).code, OutcomeCode::kChildNonzeroExit);
  EXPECT_EQ(Classify(child).guest_exit, 9);
}

TEST(Classify, LimitsHaveTheirOwnCodes) {
  using Limit = wire::Terminal::Limit;
  for (const auto& [limit, code] : {std::pair{Limit::kMemory, OutcomeCode::kMemoryLimit},
                                    std::pair{Limit::kCompile, OutcomeCode::kCompileLimit},
                                    std::pair{Limit::kOutput, OutcomeCode::kOutputLimit}}) {
    Facts facts = Reported(Kind::kLimitReached);
    facts.terminal->limit = limit;
    EXPECT_EQ(Classify(facts).code, code);
  }
}

TEST(Classify, ReportedDetailIsKept) {
  Facts facts = Reported(Kind::kTrapped);
  facts.terminal->trap = wire::Terminal::Trap{"unreachable", "wasm trap", 0, {"frame"}};
  const Outcome outcome = Classify(facts);
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->code, "unreachable");
  EXPECT_EQ(outcome.trap->backtrace, std::vector<std::string>{"frame"});
  facts = Reported(Kind::kModuleRefused);
  facts.terminal->reason = "invalid-module";
  EXPECT_EQ(Classify(facts).CodeText(), "module-refused/invalid-module");
}

TEST(Classify, P1LatchedStopOutranksEveryReport) {
  for (const Mapping& row : kMappings) {
    Facts facts = Reported(row.kind);
    facts.stop = StopCause::kDeadlineExceeded;
    EXPECT_EQ(Classify(facts).code, OutcomeCode::kDeadlineExceeded);
    facts.stop = StopCause::kCancelled;
    EXPECT_EQ(Classify(facts).code, OutcomeCode::kCancelled);
  }
}

TEST(Classify, P2BadExitOutranksReportAndStop) {
  for (const ExitStatus exit : {ExitStatus{ExitStatus::How::kExited, 3},
                                ExitStatus{ExitStatus::How::kSignalled, SIGSEGV}, ExitStatus{}}) {
    Facts facts = Reported(Kind::kCompleted, exit);
    EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
    facts.stop = StopCause::kCancelled;
    EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
  }
}

TEST(Classify, P3ProtocolFaultOutranksTheLatchedStop) {
  Facts facts;
  facts.verdict = Verdict::kProtocol;
  facts.stop = StopCause::kCancelled;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerProtocol);
}

TEST(Classify, P6FailedContainmentOutranksEverything) {
  Facts facts = Reported(Kind::kCompleted);
  facts.contained = false;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerContainmentCleanup);
}

TEST(Classify, ForcedStopNamesItsCause) {
  Facts facts;
  facts.verdict = Verdict::kForcedStop;
  facts.stop = StopCause::kCancelled;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kForcedContainmentCancelled);
  facts.stop = StopCause::kDeadlineExceeded;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kForcedContainmentDeadlineExceeded);
}

TEST(Classify, OwnReasonsToStopKeepTheirNamesForcedOrNot) {
  Facts facts = Reported(Kind::kCancelled);
  facts.stop = StopCause::kCancelled;
  facts.stdout_closed = true;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kStdoutClosed);
  facts.verdict = Verdict::kForcedStop;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kStdoutClosed);
  facts.stdout_limit_reached = true;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kStdoutLimit);
  facts.verdict = Verdict::kProtocol;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerProtocol);
}

TEST(Classify, LingeringAndLockDownHaveTheirOwnCodes) {
  Facts facts = Reported(Kind::kCompleted);
  facts.verdict = Verdict::kLingered;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerLingered);
  facts.verdict = Verdict::kLockDown;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerLaunch);
}

TEST(Case, G05RefusedAllocationIsALimitNotACrash) {
  Facts facts = Died(SIGABRT);
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
  facts.worker_stderr = "memory allocation of 1048576 bytes failed\n";
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kCompileLimit);
  facts.guest_started = true;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kMemoryLimit);
  facts.exit->code = SIGSEGV;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
}

TEST(Classify, CpuLimitIsSigxcpuOrASigkillThatTheAccountsExplain) {
  Facts facts = Died(SIGXCPU);
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
  facts.cpu_limit = std::chrono::seconds(2);
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kCpuLimit);
  facts.exit->code = SIGKILL;
  facts.cpu_used = std::chrono::milliseconds(400);
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
  facts.cpu_used = std::chrono::milliseconds(2950);
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kCpuLimit);
  facts.exited_by_itself = false;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
}

TEST(Bar, R10OutOfMemoryIsWhatTheKernelCounted) {
  Facts facts = Died(SIGKILL);
  facts.cpu_limit = std::chrono::seconds(2);
  facts.cpu_used = std::chrono::seconds(2);
  facts.memory = CgroupMemory{.limit_bytes = 100, .peak_bytes = 100, .limit_reached = true};
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kCpuLimit) << "nobody was killed for memory";
  facts.cpu_limit.reset();
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
  EXPECT_FALSE(Classify(facts).out_of_memory);

  facts.memory->oom_kills = 1;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kOutOfMemory);
  EXPECT_EQ(Classify(facts).out_of_memory, facts.memory);
  facts.memory->limit_reached = false;
  EXPECT_EQ(Classify(facts).out_of_memory, facts.memory) << "of the machine: told all the same";

  facts.exit->code = SIGSEGV;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
  facts.exit->code = SIGKILL;
  facts.exited_by_itself = false;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kWorkerUnexpectedExit);
}

TEST(Bar, R10ADeathForMemoryOutranksTheReportButNotOurOwnKill) {
  Facts facts = Reported(Kind::kCompleted);
  facts.exit = process::ExitStatus{process::ExitStatus::How::kSignalled, SIGKILL};
  facts.memory = CgroupMemory{.limit_bytes = 100, .oom_kills = 1};
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kOutOfMemory);
  facts.verdict = Verdict::kForcedStop;
  facts.stop = StopCause::kDeadlineExceeded;
  EXPECT_EQ(Classify(facts).code, OutcomeCode::kForcedContainmentDeadlineExceeded);
}

TEST(Classify, FailedAllocationIsReadFromTheLastWords) {
  EXPECT_EQ(FailedAllocationBytes("x\nmemory allocation of 42 bytes failed\nfoo"), 42U);
  EXPECT_EQ(FailedAllocationBytes("memory allocation of many bytes failed"), std::nullopt);
  EXPECT_EQ(FailedAllocationBytes("memory allocation of 42 bytes went well"), std::nullopt);
  EXPECT_EQ(FailedAllocationBytes("memory allocation of 99999999999999999999999 bytes failed"),
            std::nullopt);
  EXPECT_EQ(FailedAllocationBytes(""), std::nullopt);
}

struct Golden {
  OutcomeCode code;
  std::string_view text;
};

constexpr Golden kGolden[] = {
    {OutcomeCode::kWorkerCompleted, "worker-completed"},
    {OutcomeCode::kCancelled, "cancelled"},
    {OutcomeCode::kDeadlineExceeded, "deadline-exceeded"},
    {OutcomeCode::kForcedContainmentCancelled, "forced-containment-cancelled"},
    {OutcomeCode::kForcedContainmentDeadlineExceeded, "forced-containment-deadline-exceeded"},
    {OutcomeCode::kThreadedProfileRequired, "threaded-profile-required"},
    {OutcomeCode::kSharedMemoryLimitExceeded, "shared-memory-limit-exceeded"},
    {OutcomeCode::kRootExecutionLimitExceeded, "root-execution-limit-exceeded"},
    {OutcomeCode::kSessionBusy, "session-busy"},
    {OutcomeCode::kOutOfFuel, "out-of-fuel"},
    {OutcomeCode::kEpochRegistrationLimitExceeded, "epoch-registration-limit-exceeded"},
    {OutcomeCode::kForeignRuntime, "foreign-runtime"},
    {OutcomeCode::kBlockingTaskFailed, "blocking-task-failed"},
    {OutcomeCode::kContainmentRequired, "containment-required"},
    {OutcomeCode::kSharedMemoryUnavailable, "shared-memory-unavailable"},
    {OutcomeCode::kPrelinkFailed, "prelink-failed"},
    {OutcomeCode::kOutputGrantRejected, "output-grant-rejected"},
    {OutcomeCode::kOutputCleanupFailed, "output-cleanup-failed"},
    {OutcomeCode::kWebviewGrantRejected, "webview-grant-rejected"},
    {OutcomeCode::kWebviewCleanupFailed, "webview-cleanup-failed"},
    {OutcomeCode::kNonzeroExit, "nonzero-exit"},
    {OutcomeCode::kChildNonzeroExit, "child-nonzero-exit"},
    {OutcomeCode::kChildTrapped, "child-trapped"},
    {OutcomeCode::kChildPanicked, "child-panicked"},
    {OutcomeCode::kChildOutcomes, "child-outcomes"},
    {OutcomeCode::kValidationReportInvalid, "validation-report-invalid"},
    {OutcomeCode::kSessionGenerationExhausted, "session-generation-exhausted"},
    {OutcomeCode::kTrapped, "trapped"},
    {OutcomeCode::kMemoryLimit, "memory-limit"},
    {OutcomeCode::kOutputLimit, "output-limit"},
    {OutcomeCode::kStdoutLimit, "stdout-limit"},
    {OutcomeCode::kCpuLimit, "cpu-limit"},
    {OutcomeCode::kCompileLimit, "compile-limit"},
    {OutcomeCode::kModuleRefused, "module-refused"},
    {OutcomeCode::kWorkerInvalidConfiguration, "worker-invalid-configuration"},
    {OutcomeCode::kWorkerLaunch, "worker-launch"},
    {OutcomeCode::kWorkerProtocol, "worker-protocol"},
    {OutcomeCode::kWorkerUnexpectedExit, "worker-unexpected-exit"},
    {OutcomeCode::kWorkerContainmentCleanup, "worker-containment-cleanup"},
    {OutcomeCode::kWorkerLingered, "worker-lingered"},
    {OutcomeCode::kWorkerChildFailure, "worker-child-failure"},
    {OutcomeCode::kWorkerReportedFailure, "worker-reported-failure"},
    {OutcomeCode::kWorkerForcedContainment, "worker-forced-containment"},
    {OutcomeCode::kWorkerOutputGrant, "worker-output-grant"},
    {OutcomeCode::kWorkerOutputCommit, "worker-output-commit"},
    {OutcomeCode::kWorkerOutputCleanup, "worker-output-cleanup"},
    {OutcomeCode::kWorkerOutputCommittedCleanup, "worker-output-committed-cleanup"},
    {OutcomeCode::kOutOfMemory, "out-of-memory"},
    {OutcomeCode::kStdoutClosed, "stdout-closed"},
};

TEST(OneShot, U15CodeStringsAreLiteral) {
  ASSERT_EQ(std::size(kGolden), static_cast<std::size_t>(kLastOutcomeCode) + 1);
  for (const Golden& row : kGolden) {
    EXPECT_EQ(OutcomeCodeName(row.code), row.text);
    Outcome outcome;
    outcome.code = row.code;
    EXPECT_EQ(outcome.CodeText(), row.text);
  }
}

}  // namespace
}  // namespace bulkhead::supervise
