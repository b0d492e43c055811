// Decision table C: what becomes of the granted output.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "staging/staging_name.h"
#include "support/bulkhead_test.h"
#include "support/program.h"

namespace bulkhead::test {
namespace {

// Suites are named after the page that numbers the case.
using OneShot = BulkheadTest;
using Case = BulkheadTest;

using std::chrono::seconds;

TEST_F(OneShot, S11CompletedOutputReplacesTheDestination) {
  const RunReport report = Run(RequestWithOutput("honest_echo"));
  ExpectOutcome(report, "worker-completed", kClean);
  ExpectPublished("honest output");
  ASSERT_TRUE(report.output);
  EXPECT_TRUE(report.output->published);
  EXPECT_EQ(report.output->path, Destination());
  EXPECT_EQ(report.output->bytes, 13U);
  EXPECT_EQ(report.output->sha256,
            "fdba6749f7bf3b067e968039e8226ce6397e12860fb887143bf487fd224ac4c8");
}

TEST_F(OneShot, NewDestinationsAppear) {
  RunRequest request = RequestFor("honest_echo");
  request.output = OutputGrant{};
  request.output->path = Destination();
  ExpectOutcome(Run(request), "worker-completed", kClean);
  ExpectPublished("honest output");
}

TEST_F(OneShot, N20CompletedWithoutAnOutputIsACommitFailure) {
  const RunReport report = Run(RequestWithOutput("output_never"));
  ExpectOutcome(report, "worker-output-commit", kClean);
  EXPECT_EQ(report.masked_code, "worker-completed");
  ASSERT_TRUE(report.output);
  EXPECT_FALSE(report.output->published);
  ExpectDestinationUntouched();
}

TEST_F(OneShot, AnEmptyOutputIsAnOutput) {
  ExpectOutcome(Run(RequestWithOutput("output_empty")), "worker-completed", kClean);
  ExpectPublished("");
}

TEST_F(OneShot, OutputsAboveTheirLimitAreNotPublished) {
  RunRequest request = RequestWithOutput("output_too_big");
  request.output->bytes_max = 1000;
  const RunReport report = Run(request);
  EXPECT_FALSE(report.outcome.completed());
  EXPECT_TRUE(report.outcome.code == OutcomeCode::kOutputLimit ||
              report.outcome.code == OutcomeCode::kWorkerOutputCommit)
      << report.outcome.CodeText();
  ExpectDestinationUntouched();
}

TEST_F(OneShot, OnlyCompletedRunsPublish) {
  for (const char* worker :
       {"reports_trapped", "reports_nonzero_exit", "reports_out_of_fuel", "reports_worker_failure",
        "reports_cancelled", "exit_after_started", "completed_then_exit3", "second_trace"}) {
    SCOPED_TRACE(worker);
    EXPECT_FALSE(Run(RequestWithOutput(worker)).outcome.completed());
    ExpectDestinationUntouched();
  }
}

TEST_F(OneShot, NoClobberKeepsAnExistingDestination) {
  RunRequest request = RequestWithOutput("honest_echo");
  request.output->no_clobber = true;
  const RunReport report = Run(request);
  ExpectOutcome(report, "worker-output-commit");
  ExpectDestinationUntouched();
  ASSERT_EQ(unlink(Destination().c_str()), 0);
  ExpectOutcome(Run(request), "worker-completed");
  ExpectPublished("honest output");
}

TEST_F(OneShot, O7DirectoriesAreNotReplaced) {
  RunRequest request = RequestFor("honest_echo");
  request.output = OutputGrant{};
  request.output->path = dir().Path("taken");
  ASSERT_EQ(mkdir(request.output->path.c_str(), 0755), 0);
  const std::string kept = dir().Write("taken/kept", "kept");
  ExpectOutcome(Run(request), "worker-output-commit", kClean);
  EXPECT_EQ(ReadFile(kept), "kept");
  EXPECT_EQ(dir().Entries(), std::vector<std::string>{"taken"});
}

TEST_F(OneShot, PermissionsOfTheReplacedFileAreKept) {
  RunRequest request = RequestWithOutput("honest_echo");
  ASSERT_EQ(chmod(Destination().c_str(), 0751), 0);
  ExpectOutcome(Run(request), "worker-completed");
  struct stat info{};
  ASSERT_EQ(stat(Destination().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0751U);
}

// U3, N18: a stop that comes while the output is published is seen before the rename, or not at
// all.
TEST_F(OneShot, U2StopBeforePublicationKeepsTheOldFile) {
  const CancelSource source = *CancelSource::Create();
  RunRequest request = RequestWithOutput("honest_echo");
  request.cancel = source.token();
  stages().At(Stage::kPublish, [&](const RunEvent&) { source.Cancel(); });
  const RunReport report = Run(request);
  ExpectOutcome(report, "cancelled", kClean);
  EXPECT_EQ(report.stop, StopCause::kCancelled);
  EXPECT_EQ(report.masked_code, "worker-completed");
  ExpectDestinationUntouched();
}

TEST_F(OneShot, StagingExistsOnlyWhileTheRunLasts) {
  RunRequest request = RequestWithOutput("answers_cancelled");
  RunHandle run = StartRun(runtime(), EmptyModule(), request).value();
  ASSERT_TRUE(stages().WaitFor(Stage::kExecute));
  const std::vector<std::string> during = dir().Entries();
  ASSERT_EQ(during.size(), 2U);
  EXPECT_EQ(during[0].find(".bulkhead-staging-"), 0U) << during[0];
  struct stat info{};
  ASSERT_EQ(stat(dir().Path(during[0]).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  EXPECT_EQ(ReadFile(Destination()), "original");
  run.Cancel();
  CheckAfterRun(run.Wait());
  ExpectDestinationUntouched();
}

// Many runs into one directory at once: each its own file, no staging left, no janitor takes a
// living run's staging.
TEST_F(OneShot, RunsMayShareADirectory) {
  std::vector<RunHandle> runs;
  for (int i = 0; i < 8; ++i) {
    RunRequest request = RequestFor("honest_echo");
    request.output = OutputGrant{};
    request.output->path = dir().Path("out" + std::to_string(i));
    runs.push_back(StartRun(runtime(), EmptyModule(), request).value());
  }
  for (RunHandle& run : runs) {
    const RunReport report = run.Wait();
    CheckAfterRun(report);
    ExpectOutcome(report, "worker-completed", kClean);
  }
  EXPECT_EQ(dir().Entries().size(), 8U);
}

TEST_F(OneShot, N21StagingOfADeadOwnerIsRemovedByTheNextGrant) {
  // A name like that of this process, but of a process that started at another time: its owner is
  // dead.
  staging::OwnerIdentity owner = staging::OwnerIdentity::ReadSelf().value();
  owner.start_ticks += 1;
  const std::string stale = staging::MakeStagingName(owner);
  ASSERT_EQ(mkdir(dir().Path(stale).c_str(), 0700), 0);
  dir().Write(stale + "/output", "half");
  ExpectOutcome(Run(RequestWithOutput("honest_echo")), "worker-completed");
  ExpectPublished("honest output");
}

TEST_F(Case, G35OddNamesOfDestinationsArriveUnchanged) {
  for (const std::string& name :
       {std::string("a b"), std::string("a\"b"), std::string("a\nb"), std::string("\xE2\x98\x83"),
        std::string("\xFF"), std::string(255, 'n')}) {
    SCOPED_TRACE(testing::PrintToString(name));
    const TempDir odd;
    RunRequest request = RequestFor("honest_echo");
    request.output = OutputGrant{};
    request.output->path = odd.Path(name);
    const RunReport report = Run(request);
    ExpectOutcome(report, "worker-completed", kClean);
    EXPECT_EQ(odd.Entries(), std::vector<std::string>{name});
    EXPECT_EQ(ReadFile(odd.Path(name)), "honest output");
  }
}

}  // namespace
}  // namespace bulkhead::test
