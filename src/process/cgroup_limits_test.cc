#include "process/cgroup_limits.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text_file.h"
#include "process/cgroup_pool.h"
#include "process/process_support_test.h"
#include "process/worker_cgroups.h"

namespace bulkhead::process {
namespace {

// A directory of plain files in the place of a cgroup: what is written can be looked at, what the
// kernel would say can be chosen. A plain file keeps what a shorter text does not cover.
class FakeCgroup {
 public:
  FakeCgroup() {
    directory_.Reset(open(files_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

  void Put(const std::string& name, std::string_view text) const { files_.File(name, text, 0600); }

  std::string Get(const std::string& name) const {
    return ReadTextFile(directory(), name.c_str()).value_or("(none)");
  }

  BorrowedFd directory() const { return directory_.borrow(); }

 private:
  TestDirectory files_;
  UniqueFd directory_;
};

class FakeV2 : public FakeCgroup {
 public:
  FakeV2() {
    for (const char* empty : {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max"}) {
      Put(empty, "");
    }
    Put("memory.current", "1000\n");
    Put("memory.peak", "5000\n");
    Put("memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 1\n");
    Put("pids.current", "2\n");
  }
};

constexpr TreeLimits kBoth{.memory_bytes = 4000, .tasks = 10};

TEST(FakeCgroupV2, LimitsAreWrittenBeyondWhatIsLeft) {
  const FakeV2 fake;
  CgroupLimiter limiter(fake.directory(), CgroupKind::kV2);
  EXPECT_EQ(limiter.controllers(), (CgroupControllers{true, true}));
  ASSERT_TRUE(limiter.Begin(kBoth));
  EXPECT_EQ(fake.Get("memory.max"), "5000");
  EXPECT_EQ(fake.Get("memory.swap.max"), "0");
  EXPECT_EQ(fake.Get("memory.oom.group"), "1");
  EXPECT_EQ(fake.Get("pids.max"), "12");
  fake.Put("memory.current", "700\n");
  ASSERT_TRUE(limiter.LimitMemoryGrowth(50));
  EXPECT_EQ(fake.Get("memory.max"), "7500") << "750, over the end of 5000";
}

TEST(FakeCgroupV2, WhatIsNotLimitedIsLifted) {
  const FakeV2 fake;
  CgroupLimiter limiter(fake.directory(), CgroupKind::kV2);
  ASSERT_TRUE(limiter.Begin({}));
  EXPECT_EQ(fake.Get("memory.max"), "max");
  EXPECT_EQ(fake.Get("pids.max"), "max");
  EXPECT_FALSE(limiter.Account());
  ASSERT_TRUE(limiter.LimitMemoryGrowth(50));
  EXPECT_EQ(fake.Get("memory.max"), "max");
}

TEST(FakeCgroupV2, MissingControllersAreLeftOut) {
  const FakeCgroup fake;
  fake.Put("pids.max", "");
  fake.Put("pids.current", "0\n");
  CgroupLimiter limiter(fake.directory(), CgroupKind::kV2);
  EXPECT_EQ(limiter.controllers(), (CgroupControllers{false, true}));
  ASSERT_TRUE(limiter.Begin(kBoth));
  EXPECT_EQ(fake.Get("pids.max"), "10");
  EXPECT_FALSE(limiter.Account());
  EXPECT_TRUE(limiter.clean());
}

TEST(FakeCgroupV2, OnlyWhatHappenedSinceCounts) {
  const FakeV2 fake;
  CgroupLimiter limiter(fake.directory(), CgroupKind::kV2);
  ASSERT_TRUE(limiter.Begin(kBoth));
  // Killed for memory three times before, and the peak is an earlier worker's.
  EXPECT_EQ(limiter.Account(), (CgroupMemory{.limit_bytes = 5000}));
  EXPECT_TRUE(limiter.clean());

  fake.Put("memory.events", "max 9\noom 2\noom_kill 4\n");
  fake.Put("memory.peak", "5001\n");
  EXPECT_EQ(limiter.Account(),
            (CgroupMemory{.limit_bytes = 5000, .peak_bytes = 5001, .oom_kills = 1}))
      << "not by this limit";
  EXPECT_FALSE(limiter.clean());

  fake.Put("memory.events", "max 99\noom 3\noom_kill 6\n");
  fake.Put("memory.peak", "5000\n");
  EXPECT_EQ(limiter.Account(),
            (CgroupMemory{
                .limit_bytes = 5000, .peak_bytes = 5000, .oom_kills = 3, .limit_reached = true}));

  fake.Put("memory.events", "max 99\n");
  EXPECT_FALSE(limiter.Account()) << "a kernel that does not count says nothing";
}

TEST(FakeCgroupV2, OneThatMemoryStaysInIsNotClean) {
  const FakeV2 fake;
  CgroupLimiter limiter(fake.directory(), CgroupKind::kV2);
  ASSERT_TRUE(limiter.Begin(kBoth));
  fake.Put("memory.current", "16777217\n");
  EXPECT_FALSE(limiter.clean());
}

TEST(FakeCgroupV2, ControllersAreOfferedOnceAndOnlyThoseThereAre) {
  const FakeCgroup fake;
  EXPECT_FALSE(OfferControllers(fake.directory()).any());
  fake.Put("cgroup.controllers", "cpuset cpu memory_other pids\n");
  fake.Put("cgroup.subtree_control", "cpu pids\n");
  EXPECT_EQ(OfferControllers(fake.directory()), (CgroupControllers{false, true}));
  EXPECT_EQ(fake.Get("cgroup.subtree_control"), "cpu pids\n") << "nothing to be done";
  // The kernel would show "memory" then: a refusal shows in what is read back.
  fake.Put("cgroup.controllers", "memory pids\n");
  EXPECT_EQ(OfferControllers(fake.directory()), (CgroupControllers{false, false}));
  EXPECT_EQ(fake.Get("cgroup.subtree_control").substr(0, 5), "+pids");
}

class FakeV1Memory : public FakeCgroup {
 public:
  FakeV1Memory() {
    for (const char* empty : {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"}) {
      Put(empty, "");
    }
    Put("memory.usage_in_bytes", "1000000\n");
    Put("memory.max_usage_in_bytes", "");
    Put("memory.failcnt", "1\n");
    Put("memory.memsw.failcnt", "2\n");
    PutKills(7);
  }

  void PutKills(int kills) const {
    Put("memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill " + std::to_string(kills) + "\n");
  }
};

TEST(FakeCgroupV1, LimitsMemoryAndSwapTogether) {
  const FakeV1Memory fake;
  CgroupLimiter limiter(fake.directory(), CgroupKind::kV1Memory);
  EXPECT_EQ(limiter.controllers(), (CgroupControllers{true, false}));
  ASSERT_TRUE(limiter.Begin({.memory_bytes = 4000000, .tasks = 10}));
  EXPECT_EQ(fake.Get("memory.limit_in_bytes"), "5000000");
  EXPECT_EQ(fake.Get("memory.memsw.limit_in_bytes"), "5000000");
}

TEST(FakeCgroupV1, FailuresOrThePeakSayThatTheLimitWasMet) {
  struct Row {
    const char* failures;
    std::uint64_t peak;
    bool reached;
  };

  for (const Row& row :
       {Row{"2", 4000000, false}, Row{"3", 4000000, true}, Row{"2", 4995000, true}}) {
    SCOPED_TRACE(std::string(row.failures) + " " + std::to_string(row.peak));
    const FakeV1Memory fake;
    CgroupLimiter limiter(fake.directory(), CgroupKind::kV1Memory);
    ASSERT_TRUE(limiter.Begin({.memory_bytes = 4000000}));
    fake.Put("memory.max_usage_in_bytes", std::to_string(row.peak));
    fake.Put("memory.memsw.failcnt", row.failures);
    fake.PutKills(8);
    EXPECT_EQ(limiter.Account(), (CgroupMemory{.limit_bytes = 5000000,
                                               .peak_bytes = row.peak,
                                               .oom_kills = 1,
                                               .limit_reached = row.reached}));
    fake.Put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");
    EXPECT_FALSE(limiter.Account()) << "before Linux 4.13 nothing was counted";
  }
}

// ---- The kernel's own ----

constexpr std::size_t kMiB = 1U << 20;

class V1Memory : public testing::Test {
 protected:
  void SetUp() override {
    auto leaf = pool_.Take();
    ASSERT_TRUE(leaf) << leaf.error().message;
    if (*leaf == nullptr) {
      GTEST_SKIP() << "missing: a writable version 1 cgroup with the controller memory";
    }
    leaf_ = *std::move(leaf);
  }

  // Joins and uses `bytes` of shared memory, which no resource limit counts. 0: it could.
  int Use(std::size_t bytes) const {
    TestHost host([&] {
      BH_HOST_EXPECT(write(leaf_->membership().get(), "0", 1) == 1);
      void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      BH_HOST_EXPECT(memory != MAP_FAILED);
      auto* at = static_cast<volatile char*>(memory);
      for (std::size_t i = 0; i < bytes; i += 4096) {
        at[i] = 1;
      }
      return 0;
    });
    return host.Wait();
  }

  CgroupLimiter& limiter() const { return leaf_->limiter(); }

  CgroupPool pool_{V1MemoryMethods()};
  std::unique_ptr<CgroupLeaf> leaf_;
};

TEST_F(V1Memory, AKillIsCountedWithItsNumbers) {
  ASSERT_TRUE(limiter().Begin({.memory_bytes = 24 * kMiB}));
  EXPECT_EQ(Use(64 * kMiB), 128 + 9);
  const std::optional<CgroupMemory> memory = limiter().Account();
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->oom_kills, 1U);
  EXPECT_TRUE(memory->limit_reached);
  EXPECT_GE(memory->limit_bytes, 24 * kMiB);
  EXPECT_LE(memory->limit_bytes, 25 * kMiB);
  EXPECT_LE(memory->peak_bytes, memory->limit_bytes);
  EXPECT_GT(memory->peak_bytes, memory->limit_bytes - kMiB);
  EXPECT_FALSE(leaf_->reusable());
}

TEST_F(V1Memory, TheNextWorkerStartsFromNothing) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer takes several bytes for each that is used";
#endif
  ASSERT_TRUE(limiter().Begin({.memory_bytes = 64 * kMiB}));
  EXPECT_EQ(Use(32 * kMiB), 0);
  EXPECT_GE(limiter().Account()->peak_bytes, 32 * kMiB);
  ASSERT_TRUE(leaf_->reusable());
  // Lower, and then higher than before.
  for (const std::size_t limit : {16 * kMiB, 48 * kMiB}) {
    ASSERT_TRUE(limiter().Begin({.memory_bytes = limit}));
    EXPECT_EQ(Use(limit / 2), 0);
    const std::optional<CgroupMemory> memory = limiter().Account();
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->oom_kills, 0U);
    EXPECT_FALSE(memory->limit_reached);
    EXPECT_GE(memory->peak_bytes, limit / 2);
    EXPECT_LE(memory->peak_bytes, limit);
    EXPECT_LE(memory->limit_bytes, limit + kMiB);
    ASSERT_TRUE(leaf_->reusable());
  }
  ASSERT_TRUE(limiter().Begin({}));
  EXPECT_EQ(Use(64 * kMiB), 0) << "no limit is left";
  EXPECT_FALSE(limiter().Account());
}

}  // namespace
}  // namespace bulkhead::process
