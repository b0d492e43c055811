// Limits by cgroup around real workers, with and without a pid namespace.
#include "process/worker_cgroups.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>

#include "process/launcher.h"
#include "process/process_support_test.h"

namespace bulkhead::process {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

constexpr TreeLimits kAtAnyCost{
    .memory_bytes = 32 * kMiB, .tasks = 20, .memory_at_any_cost = true, .tasks_at_any_cost = true};

bool Has(const WorkerProcess& process, std::string_view mechanism) {
  const std::vector<std::string> names = process.walls().mechanisms;
  return std::find(names.begin(), names.end(), mechanism) != names.end();
}

// Of this process, in whatever hierarchy.
std::ptrdiff_t OwnLeaves() {
  const std::set<std::string> leaves = LeafCgroups();
  const std::string mine = "/bulkhead-" + std::to_string(getpid()) + "-";
  return std::count_if(leaves.begin(), leaves.end(), [&](const std::string& leaf) {
    return leaf.find(mine) != std::string::npos;
  });
}

class Limited : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    CgroupPools pools;
    const bool everywhere = pools.tree.LimitsAtBirth().value_or(false);
    if (!everywhere && (pools.memory.Mechanism()->empty() || pools.tasks.Mechanism()->empty())) {
      GTEST_SKIP() << "missing: writable cgroups with the controllers memory and pids";
    }
    const auto process = Spawn("/bin/true");
    ASSERT_NE(process, nullptr);
    EXPECT_TRUE(Has(*process, "cgroup-memory"));
    EXPECT_TRUE(Has(*process, "cgroup-pids"));
  }

  std::unique_ptr<WorkerProcess> Spawn(const std::string& program,
                                       const TreeLimits& limits = kAtAnyCost) {
    SpawnSpec spec;
    spec.program = program;
    spec.namespaces = GetParam();
    spec.tree_limits = limits;
    auto process = launcher_->Spawn(spec);
    EXPECT_TRUE(process) << process.error().message;
    return process ? *std::move(process) : nullptr;
  }

  // Reads zeros for ever to find the last line of them.
  std::string Eater() const { return dir_.Script("eater", "exec tail -n 1 /dev/zero"); }

  TestDirectory dir_;
  std::unique_ptr<Launcher> launcher_ = MakeLauncher();
};

TEST_P(Limited, ADeathForMemoryIsToldWithNumbersAndHitsNobodyElse) {
  SpawnSpec spec;
  spec.namespaces = GetParam();
  spec.tree_limits = kAtAnyCost;
  const auto sibling = EchoWorker::Start(*launcher_, spec);
  ASSERT_NE(sibling, nullptr);
  const auto eater = Spawn(Eater());
  ASSERT_NE(eater, nullptr);
  EXPECT_EQ(RunToEnd(*eater), (ExitStatus{ExitStatus::How::kSignalled, 9}));
  const std::optional<CgroupMemory> memory = eater->resource_use().cgroup_memory;
  ASSERT_TRUE(memory);
  EXPECT_GE(memory->oom_kills, 1U);
  EXPECT_TRUE(memory->limit_reached);
  EXPECT_GE(memory->limit_bytes, 32 * kMiB);
  EXPECT_LT(memory->limit_bytes, 34 * kMiB);
  EXPECT_GT(memory->peak_bytes, 31 * kMiB);

  sibling->CloseInput();
  EXPECT_EQ(RunToEnd(sibling->process()), (ExitStatus{ExitStatus::How::kExited, 0}));
  EXPECT_EQ(sibling->process().resource_use().cgroup_memory->oom_kills, 0U);
}

TEST_P(Limited, AKillBySomebodyElseIsNone) {
  const auto process = Spawn(dir_.Script("dies", "kill -KILL $$"));
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(RunToEnd(*process), (ExitStatus{ExitStatus::How::kSignalled, 9}));
  const std::optional<CgroupMemory> memory = process->resource_use().cgroup_memory;
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->oom_kills, 0U);
  EXPECT_FALSE(memory->limit_reached);
}

TEST_P(Limited, OneCgroupServesManyWorkersEachWithItsOwnLimit) {
  const std::string idle = dir_.Script("idle", "exit 0");
  // After a death for memory another one is used, after an ordinary end the same.
  EXPECT_EQ(RunToEnd(*Spawn(Eater())).code, 9);
  for (const std::uint64_t limit : {8 * kMiB, 64 * kMiB, 16 * kMiB}) {
    TreeLimits limits = kAtAnyCost;
    limits.memory_bytes = limit;
    const auto process = Spawn(idle, limits);
    ASSERT_NE(process, nullptr);
    EXPECT_TRUE(RunToEnd(*process).clean());
    const CgroupMemory memory = process->resource_use().cgroup_memory.value_or(CgroupMemory());
    EXPECT_GE(memory.limit_bytes, limit);
    EXPECT_LT(memory.limit_bytes, limit + 2 * kMiB);
    EXPECT_LT(memory.peak_bytes, 8 * kMiB);
    EXPECT_EQ(memory.oom_kills, 0U);
  }
  // Memory, pids, and the one for killing where there is no namespace; idle, of the last worker.
  EXPECT_LE(OwnLeaves(), 3);
  EXPECT_GE(OwnLeaves(), 1);
  launcher_.reset();
  EXPECT_EQ(OwnLeaves(), 0);
}

// The shell counts how many it could start, of at most 100.
TEST_P(Limited, ProcessesAreNoMoreThanMayBe) {
  const std::string bomb =
      dir_.Script("bomb",
                  "n=0; while [ $n -lt 100 ] && (sleep 1000 & ) 2>/dev/null; do n=$((n+1)); done\n"
                  "exit $n");
  const auto limited = Spawn(bomb);
  ASSERT_NE(limited, nullptr);
  const ExitStatus end = RunToEnd(*limited);
  EXPECT_EQ(end.how, ExitStatus::How::kExited);
  EXPECT_LT(end.code, 20);
  const auto unlimited = Spawn(bomb, {});
  ASSERT_NE(unlimited, nullptr);
  EXPECT_FALSE(Has(*unlimited, "cgroup-pids"));
  EXPECT_EQ(RunToEnd(*unlimited).code, 100);
}

TEST_P(Limited, GrowthIsLimitedFromWhatIsInUse) {
  TestPipe in = MakePipe();
  SpawnSpec spec;
  spec.namespaces = GetParam();
  spec.tree_limits = kAtAnyCost;
  spec.tree_limits.memory_bytes = 1024 * kMiB;
  // Starts to eat when it is told to.
  spec.program = dir_.Script("later", "read line; exec tail -n 1 /dev/zero");
  spec.descriptors = {{in.reader.borrow(), 0}};
  const auto process = launcher_->Spawn(spec);
  ASSERT_TRUE(process) << process.error().message;
  ASSERT_TRUE((*process)->LimitGrowth({.data_bytes = 1024 * kMiB, .uncounted_bytes = 0}));
  ASSERT_TRUE((*process)->LimitGrowth({.data_bytes = 20 * kMiB, .uncounted_bytes = 4 * kMiB}));
  // The data limit follows the process, which is another program now; what is left is the cgroup's.
  ASSERT_EQ(write(in.writer.get(), "now\n", 4), 4);
  const ExitStatus end = RunToEnd(**process);
  const std::optional<CgroupMemory> memory = (*process)->resource_use().cgroup_memory;
  ASSERT_TRUE(memory);
  EXPECT_GE(memory->limit_bytes, 24 * kMiB);
  EXPECT_LT(memory->limit_bytes, 48 * kMiB);
  EXPECT_FALSE(end.clean());
}

INSTANTIATE_TEST_SUITE_P(Both, Limited, testing::Bool(),
                         [](const auto& row) { return row.param ? "InNamespaces" : "InAGroup"; });

// Nothing is asked of version 1 that was not asked for.
TEST(WorkerCgroups, Version1IsForThoseWhoAsk) {
  const auto pools = std::make_shared<CgroupPools>();
  if (pools->tree.LimitsAtBirth().value_or(false)) {
    GTEST_SKIP() << "missing: a machine without the controllers of version 2";
  }
  const auto cgroups = WorkerCgroups::Take(pools, {.memory_bytes = kMiB, .tasks = 5}, true);
  ASSERT_TRUE(cgroups);
  EXPECT_EQ(cgroups->mechanisms(), std::vector<std::string>{});
  EXPECT_EQ(cgroups->LimitMemberships().size(), 0U);
  EXPECT_EQ(cgroups->tree(), nullptr);
  EXPECT_EQ(cgroups->why_not(), "");
}

TEST(WorkerCgroups, WhereNothingElseHoldsTheTreeWhatLimitsItDoes) {
  const auto pools = std::make_shared<CgroupPools>();
  (void)pools->tree.GiveUpUnlessProven();
  auto cgroups = WorkerCgroups::Take(pools, kAtAnyCost, false);
  ASSERT_TRUE(cgroups) << cgroups.error().message;
  const std::vector<BorrowedFd> memberships = cgroups->LimitMemberships();
  if (memberships.empty()) {
    GTEST_SKIP() << "missing: a writable version 1 cgroup with the controller memory or pids";
  }
  const TestPipe report = MakePipe();
  TestHost host([&] {
    for (const BorrowedFd membership : memberships) {
      BH_HOST_EXPECT(write(membership.get(), "0", 1) == 1);
    }
    if (fork() == 0) {
      setsid();
      const std::string text = std::to_string(getpid()) + "\n";
      BH_HOST_EXPECT(write(report.writer.get(), text.data(), text.size()) > 0);
      for (;;) {
        pause();
      }
    }
    return 0;
  });
  const ProcessIdentity stray = IdentityFromLine(ReadLine(report.reader.borrow()));
  EXPECT_EQ(host.Wait(), 0);
  EXPECT_TRUE(Alive(stray));
  EXPECT_TRUE(cgroups->KillAndWait(Soon()).value_or(false));
  EXPECT_TRUE(GoneSoon(stray));
  cgroups->GiveBack();
}

TEST(WorkerCgroups, WhatIsMissingIsNamed) {
  TestHost host([] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/sys/fs/cgroup", "tmpfs", MS_RDONLY, nullptr) != 0) {
      return kHostSkips;
    }
    SpawnSpec spec;
    spec.program = "/bin/true";
    spec.tree_limits = kAtAnyCost;
    const auto process = MakeLauncher()->Spawn(spec);
    BH_HOST_EXPECT(process && !Has(**process, "cgroup-memory") && !Has(**process, "cgroup-pids"));
    BH_HOST_EXPECT((*process)->walls().no_cgroup_because.find("can be made here") !=
                   std::string::npos);
    return 0;
  });
  const int code = host.Wait();
  if (code == kHostSkips) {
    GTEST_SKIP() << "missing: permission to mount";
  }
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace bulkhead::process
