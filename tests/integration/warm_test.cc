// Spare workers: used once, replaced, watched while they wait, and gone with the runtime.
#include <bulkhead/run.h>

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "support/bulkhead_test.h"
#include "support/proc_view.h"

namespace bulkhead::test {
namespace {

using std::chrono::seconds;

constexpr seconds kPatience{20};

class Warm : public BulkheadTest {
 protected:
  void ExpectKept(const RunRequest& like, std::uint32_t count) {
    const Status kept = KeepWarm(runtime(), like, count);
    ASSERT_TRUE(kept) << kept.error().message;
    EXPECT_TRUE(Soon([&] { return runtime().snapshot().warm.idle == count; }))
        << runtime().snapshot().warm.problem;
  }

  static bool Soon(const std::function<bool()>& condition) {
    return Eventually(kPatience, condition);
  }
};

TEST_F(Warm, ARunTakesASpareAndItIsReplaced) {
  const RunRequest request = RequestFor("honest_echo");
  ExpectKept(request, 2);
  for (std::uint64_t used = 1; used <= 3; ++used) {
    const RunReport report = Run(request);
    EXPECT_EQ(report.outcome.CodeText(), "worker-completed") << report.diagnostic;
    EXPECT_TRUE(report.warm_worker);
    EXPECT_EQ(ColumnOf(report.ledger), kClean);
    EXPECT_TRUE(Soon([&] { return runtime().snapshot().warm.idle == 2; }));
    EXPECT_EQ(runtime().snapshot().warm.used, used);
  }
  EXPECT_EQ(runtime().snapshot().warm.broken, 0U);
  EXPECT_GE(runtime().snapshot().warm.started, 5U);
}

TEST_F(Warm, WhatASpareObtainedIsInTheReport) {
  RunRequest request = RequestFor("honest_echo");
  const RunReport cold = Run(request);
  ExpectKept(request, 1);
  const RunReport warm = Run(request);
  EXPECT_FALSE(cold.warm_worker);
  EXPECT_TRUE(warm.warm_worker);
  EXPECT_EQ(warm.containment, cold.containment);
}

TEST_F(Warm, OnlyRunsOfTheSameStartUseThem) {
  const RunRequest like = RequestFor("honest_echo");
  ExpectKept(like, 1);
  const std::vector<std::function<void(RunRequest&)>> differences = {
      [](RunRequest& r) { r.limits.compile_memory_bytes /= 2; },
      [](RunRequest& r) { r.limits.cpu_time = seconds(5); },
      [](RunRequest& r) { r.limits.scratch_bytes = 65536; },
      [](RunRequest& r) { r.worker.sandbox = SandboxLevel::kNone; },
      [](RunRequest& r) { r.worker.descriptors_max = 64; },
      [&](RunRequest& r) { r.worker.working_directory = dir().path(); },
      [&](RunRequest& r) { r.directories = {{dir().path(), "/data", false}}; },
      [&](RunRequest& r) { r.worker.executable = WorkerPath("completes_fast"); },
  };
  for (const auto& differ : differences) {
    RunRequest request = like;
    differ(request);
    const RunReport report = Run(request);
    EXPECT_EQ(report.outcome.CodeText(), "worker-completed") << report.diagnostic;
    EXPECT_FALSE(report.warm_worker);
  }
  // What the worker learns later makes no difference.
  RunRequest request = like;
  request.limits.deadline = seconds(30);
  request.limits.memory_bytes = 1U << 20;
  request.arguments = {"a", "b"};
  EXPECT_TRUE(Run(request).warm_worker);
}

TEST_F(Warm, NoSpareHoldsADirectory) {
  RunRequest request = RequestFor("honest_echo");
  request.directories = {{dir().path(), "/data", false}};
  const Status kept = KeepWarm(runtime(), request, 1);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(kept.error().message.find("director"), std::string::npos);
  request.directories.clear();
  request.limits.scratch_bytes = 4096;
  EXPECT_FALSE(KeepWarm(runtime(), request, 1));
}

TEST_F(Warm, ASpareThatIsKilledIsReplacedAndCounted) {
  const RunRequest request = RequestFor("honest_echo");
  ExpectKept(request, 2);
  const std::vector<pid_t> children = ChildrenOf(getpid());
  ASSERT_EQ(children.size(), 2U);
  kill(children.front(), SIGKILL);
  EXPECT_TRUE(Soon([&] {
    const WarmCounts warm = runtime().snapshot().warm;
    return warm.broken == 1 && warm.idle == 2;
  }));
  EXPECT_EQ(runtime().snapshot().warm.problem, "a spare worker ended before it was used");
  EXPECT_TRUE(Run(request).warm_worker);
}

// The worker dies when it is handed its work: the run starts once more, cold.
TEST_F(Warm, ASpareThatBreaksInTheHandOverDoesNotCostTheRun) {
  const RunRequest request = RequestFor("exit_at_execute");
  ExpectKept(request, 1);
  const RunReport report = RunModule(runtime(), EmptyModule(), request);
  EXPECT_EQ(report.outcome.CodeText(), "worker-unexpected-exit");
  EXPECT_FALSE(report.warm_worker);
  EXPECT_EQ(report.ledger.spawned, 2U);
  EXPECT_EQ(report.ledger.reaped, 2U);
}

TEST_F(Warm, WorkersThatCannotBeGreetedAreTriedEverMoreSlowly) {
  const RunRequest request = RequestFor("exit_at_once");
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(KeepWarm(runtime(), request, 1));
  EXPECT_TRUE(Soon([&] { return runtime().snapshot().warm.broken >= 4; }));
  // 50, 100 and 200 ms have passed between the four.
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(350));
  EXPECT_EQ(runtime().snapshot().warm.idle, 0U);
  const RunReport report = Run(request);
  EXPECT_EQ(report.outcome.CodeText(), "worker-unexpected-exit");
  EXPECT_FALSE(report.warm_worker);
}

TEST_F(Warm, RefusedMechanismsMakeNoSpare) {
  RunRequest request = RequestFor("honest_echo");
  request.worker.required_mechanisms = {"seccomp"};  // which this worker program does not claim
  ASSERT_TRUE(KeepWarm(runtime(), request, 1));
  EXPECT_TRUE(Soon([&] { return runtime().snapshot().warm.broken >= 1; }));
  EXPECT_NE(runtime().snapshot().warm.problem.find("lacks seccomp"), std::string::npos);
  EXPECT_EQ(Run(request).outcome.CodeText(), "worker-launch");
}

TEST_F(Warm, NoneAreKeptAnyMore) {
  const RunRequest request = RequestFor("honest_echo");
  ExpectKept(request, 3);
  ASSERT_TRUE(KeepWarm(runtime(), request, 0));
  EXPECT_TRUE(Soon([] { return ChildrenOf(getpid()).empty(); }));
  EXPECT_FALSE(Run(request).warm_worker);
}

TEST_F(Warm, AnotherStartReplacesTheSpares) {
  ExpectKept(RequestFor("honest_echo"), 2);
  ExpectKept(RequestFor("completes_fast"), 1);
  EXPECT_TRUE(Soon([] { return ChildrenOf(getpid()).size() == 1; }));
  EXPECT_FALSE(Run(RequestFor("honest_echo")).warm_worker);
  EXPECT_TRUE(Run(RequestFor("completes_fast")).warm_worker);
}

// Spares alive at the end are the runtime's: TearDown looks for what is left.
TEST_F(Warm, ManyAtOnce) {
  const RunRequest request = RequestFor("completes_fast");
  ExpectKept(request, 3);
  std::atomic<int> warm{0};
  std::atomic<int> completed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int run = 0; run < 15; ++run) {
        const RunReport report = RunModule(runtime(), EmptyModule(), request);
        completed += report.outcome.completed() ? 1 : 0;
        warm += report.warm_worker ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(completed, 60);
  EXPECT_GT(warm, 0);
  const Snapshot snapshot = runtime().snapshot();
  EXPECT_EQ(snapshot.workers.spawned, 60U);
  EXPECT_EQ(snapshot.workers.reaped, 60U);
}

// A spare that cannot move takes the work, and the deadline still holds.
TEST_F(Warm, AStoppedSpareIsKilledAtTheDeadline) {
  RunRequest request = RequestFor("honest_echo");
  request.limits.deadline = kShortDeadline;
  ExpectKept(request, 1);
  for (const pid_t init : ChildrenOf(getpid())) {
    const std::vector<pid_t> below = ChildrenOf(init);
    kill(below.empty() ? init : below.front(), SIGSTOP);
  }
  const RunReport report = Run(request);
  EXPECT_EQ(report.outcome.CodeText(), "forced-containment-deadline-exceeded");
  EXPECT_TRUE(report.warm_worker);
}

}  // namespace
}  // namespace bulkhead::test
