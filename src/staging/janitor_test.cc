#include "staging/janitor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>

#include "staging/staging_area.h"
#include "staging/staging_testing.h"

namespace bulkhead::staging {
namespace {

// A second parent process. It runs `body`, which must call `ready` when it has come to the point of
// interest; from there on it only waits to be killed.
class OtherParent {
 public:
  using Body = std::function<void(const std::function<void()>& ready)>;

  explicit OtherParent(const Body& body) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      body([&] {
        if (write(writer.get(), "r", 1) != 1) {
          _exit(1);
        }
        for (;;) {
          pause();
        }
      });
      _exit(1);
    }
    writer.Reset();
    char byte = 0;
    EXPECT_EQ(read(reader.get(), &byte, 1), 1) << "the other parent died early";
  }

  OtherParent(const OtherParent&) = delete;
  OtherParent& operator=(const OtherParent&) = delete;

  ~OtherParent() {
    Kill();
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
  }

  // Returns when the process is dead but, as a zombie, still has its pid.
  void Kill() const {
    kill(pid_, SIGKILL);
    siginfo_t info{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }

 private:
  pid_t pid_ = -1;
};

OtherParent::Body StageAndWait(const std::string& path) {
  return [path](const std::function<void()>& ready) {
    const auto area = StageText(GrantFor(path), "partial");
    ready();
  };
}

JanitorReport Clean(const TempDir& dir) {
  const UniqueFd handle = OpenDirectory(dir.path());
  return RemoveStaleStaging(handle.borrow(), Self());
}

// An identity that no process has: pids are reused, start times are not.
OwnerIdentity DeadOwner() {
  OwnerIdentity owner = Self();
  owner.start_ticks += 1;
  return owner;
}

OwnerIdentity OwnerInOtherNamespace() {
  OwnerIdentity owner = Self();
  owner.pid_namespace += 1;
  return owner;
}

OwnerIdentity OwnerOfOtherBoot() {
  OwnerIdentity owner = Self();
  owner.boot_id = std::string(owner.boot_id.rbegin(), owner.boot_id.rend());
  return owner;
}

// What a process of that identity would leave behind.
std::string LeaveStaging(const TempDir& dir, const OwnerIdentity& owner) {
  const std::string path = dir / MakeStagingName(owner);
  EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
  WriteFile(path + "/output", "partial");
  return path;
}

TEST(OneShot, N21StagingOfAParentKilledBeforeTheRenameIsRemovedByTheNextGrant) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  const OtherParent other([&](const std::function<void()>& ready) {
    StagingHooks hooks;
    hooks.between_fsync_and_rename = ready;
    static_cast<void>(StageText(GrantFor(dir / "out"), "new", hooks)->Commit(Never));
  });
  other.Kill();
  const std::string stale = StagingIn(dir.path());

  const auto area = Stage(GrantFor(dir / "out"));

  EXPECT_FALSE(Exists(stale));
  EXPECT_EQ(ReadFile(dir / "out"), "old");
  EXPECT_EQ(EntriesOf(dir.path()).size(), 2U);
}

TEST(OneShot, N21StagingOfALivingParentStays) {
  const TempDir dir;
  {
    const OtherParent other(StageAndWait(dir / "out"));
    const std::string staging = StagingIn(dir.path());
    EXPECT_TRUE(StageText(GrantFor(dir / "out"), "mine")->Commit(Never).published);
    EXPECT_EQ(ReadFile(staging + "/output"), "partial");
  }
  EXPECT_EQ(Clean(dir).removed, 1);
  EXPECT_EQ(EntriesOf(dir.path()), std::vector<std::string>{"out"});
}

TEST(Janitor, OwnStagingStays) {
  const TempDir dir;
  const auto area = StageText(GrantFor(dir / "out"), "mine");
  const JanitorReport report = Clean(dir);
  EXPECT_EQ(report.removed, 0);
  EXPECT_EQ(report.left, 1);
  EXPECT_TRUE(area->Commit(Never).published);
}

TEST(Janitor, LivingStagingOfAnotherContainerStays) {
  const TempDir dir;
  const auto area = StagingArea::Create(GrantFor(dir / "out"), OwnerInOtherNamespace());
  ASSERT_TRUE(area.has_value());
  EXPECT_EQ(Clean(dir).left, 1);
  EXPECT_TRUE((*area)->Commit(Never).published);
}

TEST(Janitor, ReusedPidDoesNotProtect) {
  const TempDir dir;
  const std::string stale = LeaveStaging(dir, DeadOwner());
  EXPECT_EQ(Clean(dir).removed, 1);
  EXPECT_FALSE(Exists(stale));
}

TEST(Janitor, LivingOwnerProtectsEvenWithoutALock) {
  const TempDir dir;
  LeaveStaging(dir, Self());
  EXPECT_EQ(Clean(dir).left, 1);
}

TEST(Janitor, LockProtectsWhateverTheNameSays) {
  const TempDir dir;
  for (const OwnerIdentity& owner : {DeadOwner(), OwnerInOtherNamespace(), OwnerOfOtherBoot()}) {
    const std::string staging = LeaveStaging(dir, owner);
    {
      const UniqueFd held = OpenDirectory(staging);
      ASSERT_EQ(TakeOwnerLock(held.borrow()), LockState::kTaken);
      EXPECT_EQ(Clean(dir).left, 1);
      EXPECT_EQ(ReadFile(staging + "/output"), "partial");
    }
    std::filesystem::remove_all(staging);
  }
}

TEST(Janitor, UnlockedStagingOfAnotherContainerIsRemoved) {
  const TempDir dir;
  LeaveStaging(dir, OwnerInOtherNamespace());
  EXPECT_EQ(Clean(dir).removed, 1);
}

TEST(Janitor, StagingOfAnotherBootIsRemovedOnLocalFileSystemsOnly) {
  const TempDir dir;
  const UniqueFd handle = OpenDirectory(dir.path());
  LeaveStaging(dir, OwnerOfOtherBoot());
  EXPECT_EQ(Clean(dir).removed, IsLocalFileSystem(handle.borrow()) ? 1 : 0);
  const UniqueFd proc = OpenDirectory("/proc");
  EXPECT_FALSE(IsLocalFileSystem(proc.borrow()));
}

TEST(Janitor, EmptyStagingIsRemoved) {
  const TempDir dir;
  std::filesystem::remove(LeaveStaging(dir, DeadOwner()) + "/output");
  EXPECT_EQ(Clean(dir).removed, 1);
}

TEST(Janitor, WhatLooksDifferentInsideStays) {
  const TempDir dir;
  const std::string extra = LeaveStaging(dir, DeadOwner());
  WriteFile(extra + "/precious", "precious");
  const std::string renamed = LeaveStaging(dir, DeadOwner());
  std::filesystem::rename(renamed + "/output", renamed + "/precious");
  const std::string nested = LeaveStaging(dir, DeadOwner());
  std::filesystem::remove(nested + "/output");
  MakeDirectory(nested + "/output");
  const std::string open_to_others = LeaveStaging(dir, DeadOwner());
  ASSERT_EQ(chmod(open_to_others.c_str(), 0755), 0);

  const JanitorReport report = Clean(dir);

  EXPECT_EQ(report.removed, 0);
  EXPECT_EQ(report.left, 4);
  EXPECT_EQ(EntriesOf(extra).size(), 2U);
  EXPECT_TRUE(Exists(renamed + "/precious"));
  EXPECT_TRUE(Exists(nested + "/output"));
  EXPECT_TRUE(Exists(open_to_others + "/output"));
}

TEST(Janitor, SymbolicLinksAndFilesOfTheRightNameStay) {
  const TempDir dir;
  MakeDirectory(dir / "victim");
  ASSERT_EQ(chmod((dir / "victim").c_str(), 0700), 0);
  WriteFile(dir / "victim/output", "victim");
  std::filesystem::create_directory_symlink(dir / "victim", dir / MakeStagingName(DeadOwner()));
  WriteFile(dir / MakeStagingName(DeadOwner()), "file");
  ASSERT_EQ(mkfifo((dir / MakeStagingName(DeadOwner())).c_str(), 0600), 0);
  EXPECT_EQ(Clean(dir).left, 3);
  EXPECT_EQ(ReadFile(dir / "victim/output"), "victim");
}

TEST(Janitor, OtherNamesAreNoneOfItsBusiness) {
  const TempDir dir;
  const std::string valid = MakeStagingName(DeadOwner());
  for (const std::string& name :
       {valid + "x", valid.substr(1), std::string(".bulkhead-staging-1")}) {
    MakeDirectory(dir / name);
    ASSERT_EQ(chmod((dir / name).c_str(), 0700), 0);
  }
  const JanitorReport report = Clean(dir);
  EXPECT_EQ(report.removed + report.left, 0);
  EXPECT_EQ(EntriesOf(dir.path()).size(), 3U);
}

TEST(Janitor, ForeignUsersStagingStays) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "giving a directory to another user needs root";
  }
  const TempDir dir;
  const std::string staging = LeaveStaging(dir, DeadOwner());
  ASSERT_EQ(chown(staging.c_str(), OrdinaryUser::kNobody, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(Clean(dir).left, 1);
  EXPECT_TRUE(Exists(staging + "/output"));
}

TEST(Janitor, OneCallRemovesABoundedNumber) {
  const TempDir dir;
  for (int i = 0; i < 20; ++i) {
    LeaveStaging(dir, DeadOwner());
  }
  const JanitorReport first = Clean(dir);
  EXPECT_EQ(first.removed, 16);
  EXPECT_EQ(first.left, 4);
  EXPECT_EQ(Clean(dir).removed, 4);
}

}  // namespace
}  // namespace bulkhead::staging
