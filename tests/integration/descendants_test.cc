// Descendants that try to survive their worker, run after run.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "staging/file_digest.h"
#include "support/bulkhead_test.h"
#include "support/proc_view.h"
#include "support/soak.h"

namespace bulkhead::test {
namespace {

class Bar : public BulkheadTest {
 protected:
  void SetUp() override {
    if (!EscapesAreCaught()) {
      GTEST_SKIP() << "missing: a pid namespace or a writable cgroup";
    }
  }

  // With an output and a lock that every descendant holds.
  RunRequest Request(std::string_view worker) {
    RunRequest request = RequestWithOutput(worker);
    GrantAliveLock(request);
    return request;
  }

  static int RoundsOfEach() { return Rounds(12, 250); }
};

TEST_F(Bar, R3NothingSurvivesACompletedRun) {
  for (const char* worker : {"forks_setsid_twice", "forks_runaway"}) {
    SCOPED_TRACE(worker);
    for (int round = 0; round < RoundsOfEach() && !HasFailure(); ++round) {
      ExpectOutcome(Run(Request(worker)), "worker-completed", kClean);
      EXPECT_TRUE(NobodyHoldsAliveLock(dir().path())) << "a descendant outlived the run";
    }
  }
}

TEST_F(Bar, R3NothingSurvivesAKill) {
  for (const char* worker : {"abandons_many_setsid", "abandons_runaway"}) {
    SCOPED_TRACE(worker);
    for (int round = 0; round < RoundsOfEach() && !HasFailure(); ++round) {
      const CancelSource force = *CancelSource::Create();
      RunRequest request = Request(worker);
      request.force = force.token();
      stages().At(Stage::kExecute, [&](const RunEvent&) { force.Cancel(); });
      ExpectOutcome(Run(request), "forced-containment-cancelled", kForcedAtOnce);
      EXPECT_TRUE(NobodyHoldsAliveLock(dir().path())) << "a descendant outlived the run";
    }
  }
}

// What is published is what the report says, for good: whoever could still write is gone before.
TEST_F(Bar, R3NobodyWritesToAPublishedOutput) {
  for (int round = 0; round < RoundsOfEach() && !HasFailure(); ++round) {
    const RunReport report = Run(Request("forks_writer_setsid_twice"));
    ExpectOutcome(report, "worker-completed", kClean);
    EXPECT_TRUE(NobodyHoldsAliveLock(dir().path())) << "a descendant outlived the run";
    const UniqueFd published(open(Destination().c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(report.output && report.output->published);
    EXPECT_EQ(staging::HashFile(published.borrow(), report.output->bytes), report.output->sha256);
  }
}

}  // namespace
}  // namespace bulkhead::test
