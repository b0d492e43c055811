// Names that are part of the interface, literally as in section 2.4 of the specification and the
// rulings.
#include <bulkhead/module.h>
#include <bulkhead/observer.h>
#include <bulkhead/outcome.h>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace bulkhead {
namespace {

TEST(OneShotNames, U15CodesAreLiteral) {
  using C = OutcomeCode;
  using K = OutcomeKind;
  const std::vector<std::tuple<C, const char*, K>> codes = {
      {C::kWorkerCompleted, "worker-completed", K::kCompleted},
      {C::kCancelled, "cancelled", K::kStopped},
      {C::kDeadlineExceeded, "deadline-exceeded", K::kStopped},
      {C::kForcedContainmentCancelled, "forced-containment-cancelled", K::kForcedContainment},
      {C::kForcedContainmentDeadlineExceeded, "forced-containment-deadline-exceeded",
       K::kForcedContainment},
      {C::kThreadedProfileRequired, "threaded-profile-required", K::kExecution},
      {C::kSharedMemoryLimitExceeded, "shared-memory-limit-exceeded", K::kExecution},
      {C::kRootExecutionLimitExceeded, "root-execution-limit-exceeded", K::kExecution},
      {C::kSessionBusy, "session-busy", K::kExecution},
      {C::kOutOfFuel, "out-of-fuel", K::kExecution},
      {C::kEpochRegistrationLimitExceeded, "epoch-registration-limit-exceeded", K::kExecution},
      {C::kForeignRuntime, "foreign-runtime", K::kExecution},
      {C::kBlockingTaskFailed, "blocking-task-failed", K::kExecution},
      {C::kContainmentRequired, "containment-required", K::kExecution},
      {C::kSharedMemoryUnavailable, "shared-memory-unavailable", K::kExecution},
      {C::kPrelinkFailed, "prelink-failed", K::kExecution},
      {C::kOutputGrantRejected, "output-grant-rejected", K::kExecution},
      {C::kOutputCleanupFailed, "output-cleanup-failed", K::kExecution},
      {C::kWebviewGrantRejected, "webview-grant-rejected", K::kExecution},
      {C::kWebviewCleanupFailed, "webview-cleanup-failed", K::kExecution},
      {C::kNonzeroExit, "nonzero-exit", K::kExecution},
      {C::kChildNonzeroExit, "child-nonzero-exit", K::kExecution},
      {C::kChildTrapped, "child-trapped", K::kExecution},
      {C::kChildPanicked, "child-panicked", K::kExecution},
      {C::kChildOutcomes, "child-outcomes", K::kExecution},
      {C::kValidationReportInvalid, "validation-report-invalid", K::kExecution},
      {C::kSessionGenerationExhausted, "session-generation-exhausted", K::kExecution},
      {C::kTrapped, "trapped", K::kExecution},
      {C::kMemoryLimit, "memory-limit", K::kExecution},
      {C::kOutputLimit, "output-limit", K::kExecution},
      {C::kStdoutLimit, "stdout-limit", K::kExecution},
      {C::kCpuLimit, "cpu-limit", K::kExecution},
      {C::kCompileLimit, "compile-limit", K::kExecution},
      {C::kModuleRefused, "module-refused", K::kExecution},
      {C::kWorkerInvalidConfiguration, "worker-invalid-configuration", K::kFailure},
      {C::kWorkerLaunch, "worker-launch", K::kFailure},
      {C::kWorkerProtocol, "worker-protocol", K::kFailure},
      {C::kWorkerUnexpectedExit, "worker-unexpected-exit", K::kFailure},
      {C::kWorkerContainmentCleanup, "worker-containment-cleanup", K::kFailure},
      {C::kWorkerLingered, "worker-lingered", K::kFailure},
      {C::kWorkerChildFailure, "worker-child-failure", K::kFailure},
      {C::kWorkerReportedFailure, "worker-reported-failure", K::kFailure},
      {C::kWorkerForcedContainment, "worker-forced-containment", K::kFailure},
      {C::kWorkerOutputGrant, "worker-output-grant", K::kFailure},
      {C::kWorkerOutputCommit, "worker-output-commit", K::kFailure},
      {C::kWorkerOutputCleanup, "worker-output-cleanup", K::kFailure},
      {C::kWorkerOutputCommittedCleanup, "worker-output-committed-cleanup", K::kFailure},
      {C::kOutOfMemory, "out-of-memory", K::kFailure},
  };
  std::set<std::string> seen;
  for (const auto& [code, name, kind] : codes) {
    EXPECT_EQ(OutcomeCodeName(code), name);
    EXPECT_EQ(KindOf(code), kind) << name;
    EXPECT_TRUE(seen.insert(name).second);
    Outcome outcome;
    outcome.code = code;
    EXPECT_EQ(outcome.CodeText(), name);
    EXPECT_EQ(outcome.completed(), code == C::kWorkerCompleted);
    EXPECT_EQ(outcome.forced(), kind == K::kForcedContainment);
  }
}

TEST(OneShotNames, RefusalsCarryTheirReason) {
  Outcome outcome;
  outcome.code = OutcomeCode::kModuleRefused;
  outcome.reason = "invalid-binary";
  EXPECT_EQ(outcome.CodeText(), "module-refused/invalid-binary");
}

TEST(OneShotNames, EveryEnumeratorHasAName) {
  for (int code = 0; code <= static_cast<int>(kLastOutcomeCode); ++code) {
    EXPECT_FALSE(OutcomeCodeName(static_cast<OutcomeCode>(code)).empty());
  }
  const std::vector<const char*> stages = {"admit",   "launch", "handshake", "hand-over", "compile",
                                           "execute", "stop",   "reap",      "publish",   "done"};
  for (std::size_t stage = 0; stage < kStageCount; ++stage) {
    EXPECT_EQ(StageName(static_cast<Stage>(stage)), stages.at(stage));
  }
  EXPECT_EQ(StopCauseName(StopCause::kNone), "none");
  EXPECT_EQ(StopCauseName(StopCause::kCancelled), "cancelled");
  EXPECT_EQ(StopCauseName(StopCause::kDeadlineExceeded), "deadline-exceeded");
}

TEST(OneShotNames, ProfilesParseTheirNames) {
  for (const Profile profile :
       {Profile::kAuto, Profile::kWasi, Profile::kWasiThreads, Profile::kSketch}) {
    EXPECT_EQ(ParseProfile(ProfileName(profile)), profile);
  }
  EXPECT_EQ(ParseProfile("WASI"), std::nullopt);
  EXPECT_EQ(ParseProfile(""), std::nullopt);
}

}  // namespace
}  // namespace bulkhead
