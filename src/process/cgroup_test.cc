#include "process/cgroup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/proc_stat.h"
#include "base/text_file.h"
#include "process/cgroup_pool.h"
#include "process/process_support_test.h"

namespace bulkhead::process {

// Found by GoogleTest, which otherwise prints addresses into the names of the tests.
static void PrintTo(const CgroupMethod& method, std::ostream* out) {
  *out << method.name;
}

namespace {

TEST(CgroupLocation, UnifiedHierarchy) {
  const auto found = FindCgroupLocations(
      "0::/user.slice/app.scope\n",
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], (CgroupLocation{CgroupKind::kV2, "/sys/fs/cgroup/user.slice/app.scope"}));
}

TEST(CgroupLocation, HybridHierarchiesBestFirst) {
  const auto found =
      FindCgroupLocations("8:pids:/a\n6:freezer:/\n4:cpu,cpuacct:/b\n1:name=systemd:/\n0::/\n",
                          "33 31 0:31 / /cg/pids rw - cgroup cgroup rw,pids\n"
                          "35 31 0:33 / /cg/freezer rw - cgroup cgroup rw,freezer\n"
                          "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n"
                          "42 31 0:39 / /cg/my\\040dir rw - tmpfs tmpfs rw\n");
  const std::vector<CgroupLocation> expected = {{CgroupKind::kV2, "/cg/unified"},
                                                {CgroupKind::kV1Freezer, "/cg/freezer"},
                                                {CgroupKind::kV1Pids, "/cg/pids/a"}};
  EXPECT_EQ(found, expected);
}

TEST(CgroupLocation, MountsThatShowOnlyAPart) {
  const std::string mounts = "30 23 0:26 /box/one /mnt/a\\040b rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(FindCgroupLocations("0::/box/one/app\n", mounts).at(0).directory, "/mnt/a b/app");
  EXPECT_EQ(FindCgroupLocations("0::/box/one\n", mounts).at(0).directory, "/mnt/a b");
  EXPECT_TRUE(FindCgroupLocations("0::/box/onemore\n", mounts).empty());
  EXPECT_TRUE(FindCgroupLocations("0::/elsewhere\n", mounts).empty());
  EXPECT_TRUE(FindCgroupLocations("0::/../outside\n", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n")
                  .empty());
}

TEST(CgroupLocation, NothingMountedOrGarbage) {
  EXPECT_TRUE(FindCgroupLocations("", "").empty());
  EXPECT_TRUE(FindCgroupLocations("0::/\n", "").empty());
  EXPECT_TRUE(FindCgroupLocations("garbage\n::\n", "x\n1 2 3\n- - - -\n").empty());
}

// A directory of our own for leaves, so that tests see no one else's.
class CgroupTest : public testing::TestWithParam<CgroupMethod> {
 protected:
  void SetUp() override {
    for (const CgroupLocation& location :
         FindCgroupLocations(ReadTextFile("/proc/self/cgroup").value_or(""),
                             ReadTextFile("/proc/self/mountinfo").value_or(""))) {
      if (location.kind == GetParam().kind) {
        path_ = location.directory + "/leaf-test-" + std::to_string(getpid());
      }
    }
    auto leaf = path_.empty() ? Fail(ErrorCode::kUnsupported, "no such hierarchy")
                              : CgroupLeaf::Create(GetParam(), path_);
    if (!leaf) {
      GTEST_SKIP() << "missing: a writable cgroup for " << GetParam().name << ": "
                   << leaf.error().message;
    }
    leaf_ = *std::move(leaf);
  }

  std::string path_;
  std::unique_ptr<CgroupLeaf> leaf_;
};

TEST_P(CgroupTest, KillsEverythingThatForks) {
  const TestPipe report = MakePipe();
  TestHost forker([&] {
    BH_HOST_EXPECT(write(leaf_->membership().get(), "0", 1) == 1);
    for (int i = 0; i < 20; ++i) {
      if (fork() == 0) {
        setsid();
        fork();
        for (;;) {
          // Keeps forking while it is killed.
          if (fork() == 0) {
            _exit(0);
          }
          if (write(report.writer.get(), "x", 1) != 1) {
            _exit(0);
          }
        }
      }
    }
    for (;;) {
      pause();
    }
  });
  char c = 0;
  ASSERT_EQ(read(report.reader.get(), &c, 1), 1);
  const auto gone = leaf_->KillAndWait(Soon());
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_TRUE(*gone);
  EXPECT_EQ(forker.Wait(), 128 + 9);
  EXPECT_EQ(*ReadTextFile((path_ + "/cgroup.procs").c_str()), "");
  EXPECT_FALSE(leaf_->reusable());
  leaf_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_P(CgroupTest, AnEmptyOneStaysReusable) {
  EXPECT_TRUE(leaf_->Kill());
  EXPECT_TRUE(*leaf_->KillAndWait(Soon()));
  EXPECT_TRUE(leaf_->reusable());
  rmdir(path_.c_str());
  EXPECT_FALSE(leaf_->reusable());
}

TEST_P(CgroupTest, OnlyTheUnlockedCanBeAdopted) {
  EXPECT_FALSE(CgroupLeaf::Adopt(GetParam(), path_));
  EXPECT_FALSE(CgroupLeaf::Create(GetParam(), path_));
  EXPECT_TRUE(std::filesystem::exists(path_));
  leaf_.reset();
  ASSERT_EQ(mkdir(path_.c_str(), 0755), 0);
  {
    const auto adopted = CgroupLeaf::Adopt(GetParam(), path_);
    EXPECT_TRUE(adopted) << adopted.error().message;
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

INSTANTIATE_TEST_SUITE_P(AllMethods, CgroupTest,
                         testing::ValuesIn(CgroupMethods().begin(), CgroupMethods().end()),
                         [](const auto& row) {
                           std::string name(row.param.name);
                           std::erase(name, '-');
                           return name;
                         });

TEST(CgroupPool, LeavesAreUsedAgainAndRemovedAtTheEnd) {
  std::string path;
  {
    CgroupPool pool;
    auto first = pool.Take();
    ASSERT_TRUE(first) << first.error().message;
    if (*first == nullptr) {
      GTEST_SKIP() << "missing: a writable cgroup";
    }
    EXPECT_FALSE(pool.Mechanism()->empty());
    path = (*first)->path();
    auto second = pool.Take();
    ASSERT_TRUE(second && *second != nullptr);
    EXPECT_NE((*second)->path(), path);
    pool.GiveBack(*std::move(first));
    auto third = pool.Take();
    EXPECT_EQ((*third)->path(), path);
    pool.GiveBack(*std::move(third));
    // One that somebody removed is not handed out.
    rmdir(path.c_str());
    auto fourth = pool.Take();
    ASSERT_TRUE(fourth && *fourth != nullptr);
    EXPECT_NE((*fourth)->path(), path);
    path = (*fourth)->path();
    pool.GiveBack(*std::move(fourth));
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(CgroupPool, GivesUpOnlyWhatNeverWorked) {
  CgroupPool pool;
  if (*pool.Take() == nullptr) {
    GTEST_SKIP() << "missing: a writable cgroup";
  }
  pool.MarkProven();
  EXPECT_FALSE(pool.GiveUpUnlessProven());
  EXPECT_NE(*pool.Take(), nullptr);

  CgroupPool other;
  ASSERT_NE(*other.Take(), nullptr);
  EXPECT_TRUE(other.GiveUpUnlessProven());
  EXPECT_EQ(*other.Take(), nullptr);
  EXPECT_EQ(*other.Mechanism(), "");
}

TEST(CgroupPool, WhatADeadOwnerLeftIsKilledAndRemoved) {
  TestPipe report = MakePipe();
  TestHost owner([&] {
    CgroupPool pool;
    const auto leaf = pool.Take();
    if (!leaf || *leaf == nullptr) {
      return kHostSkips;
    }
    const TestHost stray([&] {
      BH_HOST_EXPECT(write((*leaf)->membership().get(), "0", 1) == 1);
      const std::string text = std::to_string(getpid()) + "\n" + (*leaf)->path() + "\n";
      // As an exec would: the lock is then the owner's alone.
      BH_HOST_EXPECT(dup2(report.writer.get(), 3) == 3 && close_range(4, ~0U, 0) == 0);
      BH_HOST_EXPECT(write(3, text.data(), text.size()) > 0);
      for (;;) {
        pause();
      }
    });
    for (;;) {
      pause();
    }
  });
  report.writer.Reset();
  const ProcessIdentity stray = IdentityFromLine(ReadLine(report.reader.borrow()));
  if (stray.pid == 0) {
    GTEST_SKIP() << "missing: a writable cgroup";
  }
  const std::string path = ReadLine(report.reader.borrow());
  EXPECT_TRUE(CgroupPool().Mechanism());
  EXPECT_TRUE(Alive(stray)) << "the owner lives: not abandoned";
  owner.Kill();
  EXPECT_EQ(owner.Wait(), 128 + 9);
  EXPECT_TRUE(Alive(stray));
  EXPECT_TRUE(CgroupPool().Mechanism());
  // Another process of this machine may have been quicker and be at it still.
  EXPECT_TRUE(GoneSoon(stray));
  const Deadline deadline = Soon();
  while (std::filesystem::exists(path) && !deadline.PassedAt(MonotonicClock().Now())) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace bulkhead::process
