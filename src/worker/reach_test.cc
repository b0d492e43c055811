// What a worker cannot reach any more: paths after EnterEmptyRoot, rights after GiveUpPrivileges.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "base/unique_fd.h"
#include "worker/empty_root.h"
#include "worker/privileges.h"

namespace bulkhead::worker {
namespace {

constexpr int kExitNoNamespaces = 77;

// The exit code of a child that runs `body`; 100 and more where a signal ended it.
int InChild(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(body());
  }
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

#define BH_CHILD_EXPECT(condition)                                                    \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "%s:%d: child expected: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                                       \
    }                                                                                 \
  } while (false)

bool OwnMounts() {
  return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

int ErrnoOf(long result) {
  return result < 0 ? errno : 0;
}

int CountEntries(const char* path) {
  DIR* const directory = opendir(path);
  if (directory == nullptr) {
    return -1;
  }
  int count = 0;
  while (readdir(directory) != nullptr) {
    ++count;
  }
  closedir(directory);
  return count;
}

int LookAroundInAnEmptyRoot() {
  BH_CHILD_EXPECT(CountEntries("/") == 2);  // . and ..
  for (const char* path : {"/etc/passwd", "/proc/self/status", "/dev/null", "../etc/passwd",
                           "/../../etc/passwd", "/tmp"}) {
    BH_CHILD_EXPECT(ErrnoOf(open(path, O_RDONLY | O_CLOEXEC)) == ENOENT);
  }
  BH_CHILD_EXPECT(ErrnoOf(mkdir("/new", 0700)) == EROFS);
  BH_CHILD_EXPECT(ErrnoOf(open("/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == EROFS);
  // Nothing lies under it that could be uncovered.
  umount2("/", MNT_DETACH);
  BH_CHILD_EXPECT(CountEntries("/") == 2);
  return 0;
}

TEST(Reach, NoPathLeadsOutOfAnEmptyRoot) {
  const int code = InChild([] {
    if (!OwnMounts()) {
      return kExitNoNamespaces;
    }
    const UniqueFd etc(open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto mechanism = EnterEmptyRoot();
    BH_CHILD_EXPECT(mechanism.has_value());
    if (*mechanism != "empty-root") {
      return kExitNoNamespaces;
    }
    BH_CHILD_EXPECT(LookAroundInAnEmptyRoot() == 0);
    // What is held stays held: granted directories are.
    BH_CHILD_EXPECT(UniqueFd(openat(etc.get(), "passwd", O_RDONLY | O_CLOEXEC)).valid());
    return 0;
  });
  if (code == kExitNoNamespaces) {
    GTEST_SKIP() << "missing: permission to make a mount namespace and leave its root";
  }
  EXPECT_EQ(code, 0);
}

TEST(Reach, AChrootIsLeftByAnotherChroot) {
  std::string root = std::filesystem::temp_directory_path() / "bulkhead-reach-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  std::filesystem::create_directory(root + "/proc");
  std::filesystem::create_directory(root + "/secret");
  const int code = InChild([&] {
    if (!OwnMounts() || chroot(root.c_str()) != 0 || chdir("/") != 0) {
      return kExitNoNamespaces;
    }
    const auto mechanism = EnterEmptyRoot();
    BH_CHILD_EXPECT(mechanism.has_value() && *mechanism == "empty-root-by-chroot");
    BH_CHILD_EXPECT(CountEntries("/") == 2);
    BH_CHILD_EXPECT(ErrnoOf(open("/secret", O_RDONLY | O_CLOEXEC)) == ENOENT);
    return 0;
  });
  std::filesystem::remove_all(root);
  if (code == kExitNoNamespaces) {
    GTEST_SKIP() << "missing: permission to make a mount namespace and to change the root";
  }
  EXPECT_EQ(code, 0);
}

TEST(Reach, WithoutNamespacesOfItsOwnItIsAnError) {
  const int code = InChild([] {
    if (setgroups(0, nullptr) != 0 || setresuid(65534, 65534, 65534) != 0) {
      return kExitNoNamespaces;
    }
    const auto mechanism = EnterEmptyRoot();
    BH_CHILD_EXPECT(!mechanism.has_value() && mechanism.error().reason == "empty-root" &&
                    mechanism.error().sys_errno == EPERM);
    return 0;
  });
  if (code == kExitNoNamespaces) {
    GTEST_SKIP() << "missing: root, who can become an ordinary user";
  }
  EXPECT_EQ(code, 0);
}

std::uint64_t Permitted() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> words{};
  syscall(SYS_capget, &header, words.data());
  return words[0].permitted | std::uint64_t{words[1].permitted} << 32;
}

int ExpectNobody() {
  uid_t user[3];
  gid_t group[3];
  BH_CHILD_EXPECT(getresuid(&user[0], &user[1], &user[2]) == 0);
  BH_CHILD_EXPECT(getresgid(&group[0], &group[1], &group[2]) == 0);
  for (int i = 0; i < 3; ++i) {
    BH_CHILD_EXPECT(user[i] == 65534 && group[i] == 65534);
  }
  BH_CHILD_EXPECT(getgroups(0, nullptr) == 0);
  BH_CHILD_EXPECT(Permitted() == 0);
  BH_CHILD_EXPECT(ErrnoOf(setresuid(0, 0, 0)) == EPERM);
  BH_CHILD_EXPECT(ErrnoOf(open("/etc/shadow", O_RDONLY | O_CLOEXEC)) == EACCES);
  return 0;
}

TEST(Reach, NobodyOwnsNothing) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "missing: root";
  }
  EXPECT_EQ(InChild([] {
              PrivilegesRequest request;
              request.become_nobody = true;
              const auto mechanisms = GiveUpPrivileges(request);
              BH_CHILD_EXPECT(mechanisms.has_value());
              BH_CHILD_EXPECT((*mechanisms ==
                               std::vector<std::string>{"unprivileged-user", "no-capabilities"}));
              return ExpectNobody();
            }),
            0);
}

TEST(Reach, CapabilitiesAreGone) {
  EXPECT_EQ(InChild([] {
              const auto mechanisms = GiveUpPrivileges({});
              BH_CHILD_EXPECT(mechanisms && mechanisms->back() == "no-capabilities");
              BH_CHILD_EXPECT(Permitted() == 0);
              BH_CHILD_EXPECT(ErrnoOf(unshare(CLONE_NEWNS)) == EPERM);
              return 0;
            }),
            0);
}

TEST(Reach, RootKeepsWhatGrantedDirectoriesNeed) {
  const std::uint64_t files = (1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER) & Permitted();
  if (files == 0) {
    GTEST_SKIP() << "missing: root's rights to files";
  }
  EXPECT_EQ(InChild([files] {
              PrivilegesRequest request;
              request.keep_file_rights = true;
              const auto mechanisms = GiveUpPrivileges(request);
              BH_CHILD_EXPECT(mechanisms && mechanisms->back() == "file-capabilities-only");
              BH_CHILD_EXPECT(Permitted() == files);
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace bulkhead::worker
