// Limits by cgroup, and what is said of a worker that the kernel killed for memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "process/worker_cgroups.h"
#include "support/bulkhead_test.h"
#include "support/proc_view.h"

namespace bulkhead::test {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

bool Obtained(const std::vector<std::string>& containment, std::string_view mechanism) {
  return std::find(containment.begin(), containment.end(), mechanism) != containment.end();
}

const LimitUse* FindLimit(const RunReport& report, std::string_view name) {
  const auto found = std::find_if(report.limits.begin(), report.limits.end(),
                                  [&](const LimitUse& limit) { return limit.name == name; });
  return found == report.limits.end() ? nullptr : &*found;
}

// Everything at its smallest: 64 MiB and a stack are the worker's own.
RunRequest Limited(RunRequest request) {
  request.worker.required_mechanisms = {"cgroup-memory", "cgroup-pids"};
  request.limits.memory_bytes = 16 * kMiB;
  request.limits.compile_memory_bytes = 64 * kMiB;
  request.limits.threads_max = 1;
  return request;
}

class Cgroups : public BulkheadTest {
 protected:
  static constexpr std::uint64_t kOwnBytes = 66 * kMiB;  // of a worker with a stack of 2 MiB
  // At most: in use when the guest starts, and what only cgroups count.
  static constexpr std::uint64_t kSlackBytes = 80 * kMiB;

  void SetUp() override {
    process::CgroupPools pools;
    const bool everywhere = pools.tree.LimitsAtBirth().value_or(false);
    if (!everywhere && (pools.memory.Mechanism()->empty() || pools.tasks.Mechanism()->empty())) {
      ExpectOutcome(Run(Limited(RequestFor("honest_echo"))), "worker-launch");
      GTEST_SKIP() << "missing: writable cgroups with the controllers memory and pids";
    }
  }
};

using Bar = Cgroups;

TEST_F(Cgroups, WhatWasObtainedIsInReportAndSnapshot) {
  // One that is still there when the parent notes that its guest runs.
  const RunReport report = RunCancelledInExecute(Limited(RequestFor("answers_cancelled")));
  for (const char* mechanism : {"cgroup-memory", "cgroup-pids"}) {
    EXPECT_TRUE(Obtained(report.containment, mechanism)) << mechanism;
  }
  EXPECT_EQ(runtime().snapshot().containment, report.containment);
  ASSERT_TRUE(report.cgroup_memory);
  const LimitUse* limit = FindLimit(report, "cgroup-memory-bytes");
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->cap, report.cgroup_memory->limit_bytes);
  EXPECT_FALSE(limit->reached);
  // Once the guest runs: what is in use by then, and as much more.
  EXPECT_GE(limit->cap, 16 * kMiB + kOwnBytes);
  EXPECT_LT(limit->cap, 16 * kMiB + kOwnBytes + kSlackBytes);
}

TEST_F(Bar, R10AKillForMemoryIsAttributedWithNumbers) {
  for (const SandboxLevel level : {SandboxLevel::kDefault, SandboxLevel::kNone}) {
    SCOPED_TRACE(SandboxLevelName(level));
    RunRequest request = Limited(RequestWithOutput("eats_shared_memory"));
    request.worker.sandbox = level;
    const RunReport report = Run(request);
    ExpectOutcome(report, "out-of-memory", kClean);
    EXPECT_EQ(report.worker_exit, "signal 9 (Killed)");
    ASSERT_TRUE(report.outcome.out_of_memory);
    const CgroupMemory& memory = *report.outcome.out_of_memory;
    EXPECT_GE(memory.oom_kills, 1U);
    EXPECT_TRUE(memory.limit_reached);
    EXPECT_GE(memory.limit_bytes, 16 * kMiB + kOwnBytes);
    EXPECT_LT(memory.limit_bytes, 16 * kMiB + kOwnBytes + kSlackBytes);
    EXPECT_LE(memory.peak_bytes, memory.limit_bytes);
    EXPECT_GT(memory.peak_bytes, memory.limit_bytes - kMiB);
    EXPECT_NE(report.diagnostic.find(std::to_string(memory.limit_bytes)), std::string::npos)
        << report.diagnostic;
    EXPECT_TRUE(FindLimit(report, "cgroup-memory-bytes")->reached);
    ExpectDestinationUntouched();
  }
}

TEST_F(Bar, R10OtherDeathsAreNotAttributed) {
  const RunReport report = Run(Limited(RequestFor("half_frame_sigkill")));
  ExpectOutcome(report, "worker-unexpected-exit", kClean);
  EXPECT_EQ(report.worker_exit, "signal 9 (Killed)");
  EXPECT_FALSE(report.outcome.out_of_memory);
  EXPECT_EQ(report.cgroup_memory.value_or(CgroupMemory{.oom_kills = 9}).oom_kills, 0U);
}

TEST_F(Bar, R10SiblingsGoOn) {
  const AdmittedModule module = EmptyModule();
  std::ptrdiff_t executing = 0;
  for (const bool limited : {true, false}) {
    const RunRequest waits = RequestFor("answers_cancelled");
    auto sibling = StartRun(runtime(), module, limited ? Limited(waits) : waits);
    ASSERT_TRUE(sibling) << sibling.error().message;
    ASSERT_TRUE(stages().WaitForAll(Stage::kExecute, ++executing));
    const RunReport eater = RunModule(runtime(), module, Limited(RequestFor("eats_shared_memory")));
    ExpectOutcome(eater, "out-of-memory");
    ++executing;
    sibling->Cancel();
    const RunReport report = sibling->Wait();
    ExpectOutcome(report, "cancelled", kPoliteStop);
    CheckAfterRun(report);
  }
}

// The same cgroup serves one run after the other: neither limit nor peak nor death of an earlier
// one is a later one's.
TEST_F(Cgroups, EveryRunHasItsOwnLimit) {
  ExpectOutcome(Run(Limited(RequestFor("eats_shared_memory"))), "out-of-memory");
  for (const std::uint64_t memory : {16 * kMiB, 256 * kMiB, 32 * kMiB}) {
    RunRequest request = Limited(RequestFor("eats_shared_memory_32_mib"));
    request.limits.memory_bytes = memory;
    const RunReport report = RunCancelledInExecute(request);
    ExpectOutcome(report, "cancelled", kPoliteStop);
    ASSERT_TRUE(report.cgroup_memory);
    EXPECT_GE(report.cgroup_memory->limit_bytes, memory + kOwnBytes);
    EXPECT_LT(report.cgroup_memory->limit_bytes, memory + kOwnBytes + kSlackBytes);
    EXPECT_GE(report.cgroup_memory->peak_bytes, 32 * kMiB);
    EXPECT_LT(report.cgroup_memory->peak_bytes, 64 * kMiB);
    EXPECT_EQ(report.cgroup_memory->oom_kills, 0U);
  }
}

TEST_F(Cgroups, AForkBombEndsAtItsLimit) {
  RunRequest request = Limited(RequestFor("fork_bomb"));
  request.stdout_to = GuestStream::Capture(100);
  const auto limit = 18 + static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  for (const SandboxLevel level : {SandboxLevel::kDefault, SandboxLevel::kNone}) {
    SCOPED_TRACE(SandboxLevelName(level));
    request.worker.sandbox = level;
    const RunReport report = Run(request);
    ExpectOutcome(report, "worker-completed", kClean);
    EXPECT_GT(std::stoi(report.stdout_captured), 2);
    EXPECT_LE(std::stoi(report.stdout_captured), limit);
  }
  request.worker.required_mechanisms.clear();
  const RunReport report = Run(request);
  if (!Obtained(report.containment, "cgroup-pids")) {
    EXPECT_EQ(report.stdout_captured, "300") << "it is the cgroup that holds it";
  }
}

TEST_F(Cgroups, SparesAreLimitedFromTheirStart) {
  const RunRequest request = Limited(RequestFor("eats_shared_memory"));
  ASSERT_TRUE(KeepWarm(runtime(), request, 1));
  ASSERT_TRUE(
      Eventually(std::chrono::seconds(30), [&] { return runtime().snapshot().warm.idle == 1; }));
  const RunReport report = Run(request);
  EXPECT_TRUE(report.warm_worker);
  ExpectOutcome(report, "out-of-memory", kClean);
  ASSERT_TRUE(KeepWarm(runtime(), request, 0));
}

}  // namespace
}  // namespace bulkhead::test
