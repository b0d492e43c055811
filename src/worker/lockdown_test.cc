// The lock-down bites: children lock themselves down for real and then try what they must not.
#include "worker/lockdown.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

namespace bulkhead::worker {
namespace {

constexpr int kExitLockDownFailed = 99;
constexpr int kExitNoLandlock = 98;

// Runs `body` in a locked-down child and returns its wait status; the body's value is the exit
// code.
int InLockedDownChild(const std::function<LockdownRequest()>& request,
                      const std::function<int(const LockedDown&)>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    const Result<LockedDown> locked = LockDown(request());
    if (!locked) {
      _exit(kExitLockDownFailed);
    }
    const bool landlock =
        std::any_of(locked->mechanisms.begin(), locked->mechanisms.end(),
                    [](const std::string& m) { return m.rfind("landlock", 0) == 0; });
    const bool needs_landlock = !locked->directories.empty() && locked->guest_phase.sandboxed();
    _exit(needs_landlock && !landlock ? kExitNoLandlock : body(*locked));
  }
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

LockdownRequest Plain() {
  LockdownRequest request;
  request.limits.data_bytes = 1ULL << 30;
  request.limits.file_bytes_max = 1ULL << 20;
  return request;
}

// The errno of a raw call, 0 if it succeeded.
int ErrnoOf(long result) {
  return result < 0 ? errno : 0;
}

struct Attempt {
  const char* name;
  std::function<int()> act;  // 0, or the errno it met
  int expected_errno;        // kKilled: the child dies of SIGSYS
};

constexpr int kKilled = -1;

TEST(Lockdown, RefusesWhatACompromisedWorkerWouldTry) {
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const pid_t test_process = getpid();
  const std::vector<Attempt> attempts = {
      {"nothing", [] { return 0; }, 0},
      {"open", [] { return ErrnoOf(open("/etc/passwd", O_RDONLY | O_CLOEXEC)); }, ENOSYS},
      {"stat", [] { return ErrnoOf(access("/etc/passwd", F_OK)); }, ENOSYS},
      {"memfd_create", [] { return ErrnoOf(memfd_create("m", MFD_CLOEXEC)); }, ENOSYS},
      {"ioctl", [] { return ErrnoOf(syscall(SYS_ioctl, 0, 0x5401, nullptr)); }, ENOSYS},
      {"raise a limit",
       [] {
         const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
         return ErrnoOf(setrlimit(RLIMIT_NOFILE, &unlimited));
       },
       ENOSYS},
      {"socket", [] { return ErrnoOf(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }, kKilled},
      {"execve", [] { return ErrnoOf(execl("/bin/true", "true", nullptr)); }, kKilled},
      {"fork", [] { return ErrnoOf(fork()); }, kKilled},
      {"the fork call itself", [] { return ErrnoOf(syscall(SYS_fork)); }, kKilled},
      {"clone into a name space",
       [] { return ErrnoOf(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)); }, kKilled},
      {"kill the parent", [] { return ErrnoOf(kill(getppid(), SIGTERM)); }, kKilled},
      {"signal a foreign thread",
       [test_process] { return ErrnoOf(syscall(SYS_tgkill, test_process, test_process, SIGTERM)); },
       kKilled},
      {"ptrace", [] { return ErrnoOf(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }, kKilled},
      {"process_vm_readv",
       [] { return ErrnoOf(syscall(SYS_process_vm_readv, getppid(), 0, 0, 0, 0, 0)); }, kKilled},
      {"writable code",
       [] {
         return mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0) == MAP_FAILED
                    ? errno
                    : 0;
       },
       kKilled},
      {"code made writable",
       [page] { return ErrnoOf(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC)); },
       kKilled},
      {"code made executable",
       [page] { return ErrnoOf(mprotect(page, 4096, PROT_READ | PROT_EXEC)); }, 0},
      {"io_uring", [] { return ErrnoOf(syscall(SYS_io_uring_setup, 8, nullptr)); }, kKilled},
      {"unshare", [] { return ErrnoOf(unshare(CLONE_NEWUSER)); }, kKilled},
      {"bpf", [] { return ErrnoOf(syscall(SYS_bpf, 0, nullptr, 0)); }, kKilled},
      {"userfaultfd", [] { return ErrnoOf(syscall(SYS_userfaultfd, 0)); }, kKilled},
      {"keyctl", [] { return ErrnoOf(syscall(SYS_keyctl, 0, 0, 0, 0, 0)); }, kKilled},
      {"setuid", [] { return ErrnoOf(syscall(SYS_setuid, 0)); }, kKilled},
      {"an x32 call", [] { return ErrnoOf(syscall(0x40000000 | SYS_getpid)); }, kKilled},
  };
  for (const Attempt& attempt : attempts) {
    const int status =
        InLockedDownChild(&Plain, [&attempt](const LockedDown&) { return attempt.act(); });
    if (attempt.expected_errno == kKilled) {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
          << attempt.name << ": " << status;
    } else {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == attempt.expected_errno)
          << attempt.name << ": " << status;
    }
  }
}

TEST(Lockdown, LeavesWhatAWorkerNeeds) {
  const int status = InLockedDownChild(&Plain, [](const LockedDown&) {
    int seen = 0;
    std::thread([&seen] { seen = 1; }).join();
    return seen == 1 && !std::make_unique<std::vector<char>>(1U << 24)->empty() ? 0 : 1;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Lockdown, AbortStillEndsTheProcessProperly) {
  const int status = InLockedDownChild(&Plain, [](const LockedDown&) -> int { std::abort(); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
}

TEST(Lockdown, GuestPhaseForbidsNewCodeAndLimitsMemory) {
  int status = InLockedDownChild(&Plain, [](const LockedDown& locked) {
    constexpr std::size_t kMegabyte = 1U << 20;
    const auto map = [](std::size_t bytes) {
      return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
             MAP_FAILED;
    };
    if (!locked.guest_phase.Enter(16 * kMegabyte)) {
      return 1;
    }
    return map(12 * kMegabyte) && !map(12 * kMegabyte) && errno == ENOMEM ? 0 : 2;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  status = InLockedDownChild(&Plain, [](const LockedDown& locked) {
    void* const page =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return locked.guest_phase.Enter(1U << 20) ? ErrnoOf(mprotect(page, 4096, PROT_READ | PROT_EXEC))
                                              : 1;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
}

TEST(Lockdown, WithoutSandboxLimitsStillHold) {
  const auto request = [] {
    LockdownRequest without = Plain();
    without.sandbox = false;
    without.limits.cpu_seconds = 5;
    return without;
  };
  const int status = InLockedDownChild(request, [](const LockedDown& locked) {
    const auto soft = [](__rlimit_resource_t resource) {
      rlimit limit{};
      getrlimit(resource, &limit);
      return limit.rlim_cur;
    };
    const bool limited = soft(RLIMIT_CORE) == 0 && soft(RLIMIT_CPU) == 5 &&
                         soft(RLIMIT_DATA) == 1U << 30 && soft(RLIMIT_FSIZE) == 1U << 20 &&
                         soft(RLIMIT_NOFILE) < 1024;
    const bool marked =
        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
    const std::vector<std::string> expected = {"rlimits", "no-new-privs", "not-dumpable"};
    return limited && marked && locked.mechanisms == expected ? 0 : 1;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

class LockdownFiles : public testing::Test {
 protected:
  LockdownFiles() {
    std::string pattern = testing::TempDir() + "bulkhead-lockdown-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    std::filesystem::create_directories(path_ / "granted" / "deeper");
    std::filesystem::create_directories(path_ / "other");
    EXPECT_GE(open((path_ / "granted" / "file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), 0);
    EXPECT_GE(open((path_ / "other" / "file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), 0);
  }

  void TearDown() override { std::filesystem::remove_all(path_); }

  std::function<LockdownRequest()> Granting(bool writable) const {
    return [this, writable] {
      LockdownRequest request = Plain();
      request.directories.push_back(
          {UniqueFd(open((path_ / "granted").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), "/data",
           writable});
      return request;
    };
  }

  // The errno of opening a path in the child.
  int Open(bool writable, const std::string& path, int flags) const {
    const std::string full = path_ / path;
    const int status = InLockedDownChild(Granting(writable), [&](const LockedDown&) {
      open_how how{};
      how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
      how.mode = (flags & O_CREAT) != 0 ? 0600 : 0;
      return ErrnoOf(syscall(SYS_openat2, AT_FDCWD, full.c_str(), &how, sizeof how));
    });
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return WEXITSTATUS(status);
  }

  bool NoLandlock() const { return Open(false, "granted/file", O_RDONLY) == kExitNoLandlock; }

  std::filesystem::path path_;
};

TEST_F(LockdownFiles, OnlyGrantedDirectoriesAreReached) {
  if (NoLandlock()) {
    GTEST_SKIP() << "the kernel has no Landlock";
  }
  for (const bool writable : {false, true}) {
    EXPECT_EQ(Open(writable, "granted/file", O_RDONLY), 0);
    EXPECT_EQ(Open(writable, "other/file", O_RDONLY), EACCES);
    EXPECT_EQ(Open(writable, "", O_RDONLY | O_DIRECTORY), EACCES);
  }
}

TEST_F(LockdownFiles, OnlyWritableGrantsAreWritten) {
  if (NoLandlock()) {
    GTEST_SKIP() << "the kernel has no Landlock";
  }
  EXPECT_EQ(Open(false, "granted/file", O_WRONLY), EACCES);
  EXPECT_EQ(Open(false, "granted/new", O_WRONLY | O_CREAT), EACCES);
  EXPECT_EQ(Open(true, "granted/file", O_WRONLY | O_TRUNC), 0);
  EXPECT_EQ(Open(true, "granted/deeper/new", O_WRONLY | O_CREAT), 0);
  EXPECT_EQ(Open(true, "other/new", O_WRONLY | O_CREAT), EACCES);
}

TEST_F(LockdownFiles, ScratchIsAFileSystemOfItsOwn) {
  const auto request = [] {
    LockdownRequest with_scratch = Plain();
    with_scratch.scratch_bytes = 64U << 10;
    return with_scratch;
  };
  const int status = InLockedDownChild(request, [](const LockedDown& locked) {
    const DirectoryGrant& scratch = locked.directories.at(0);
    if (scratch.guest_path != "/tmp" || !scratch.writable) {
      return 1;
    }
    open_how how{};
    how.flags = O_CREAT | O_RDWR | O_CLOEXEC;
    how.mode = 0600;
    how.resolve = RESOLVE_BENEATH;
    const auto file =
        static_cast<int>(syscall(SYS_openat2, scratch.directory.get(), "file", &how, sizeof how));
    if (file < 0) {
      return 2;
    }
    // Half of it fits, as much again does not.
    const std::vector<char> half(32U << 10);
    const bool first = write(file, half.data(), half.size()) == static_cast<ssize_t>(half.size());
    const bool second = write(file, half.data(), half.size()) == static_cast<ssize_t>(half.size());
    const bool third = write(file, half.data(), half.size()) > 0;
    return first && second && !third && errno == ENOSPC ? 0 : 3;
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitLockDownFailed) {
    GTEST_SKIP() << "neither the privilege to mount nor unprivileged user name spaces";
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitNoLandlock) {
    GTEST_SKIP() << "the kernel has no Landlock";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Lockdown, FailuresNameTheirMechanism) {
  const pid_t pid = fork();
  if (pid == 0) {
    LockdownRequest request = Plain();
    request.directories.push_back({UniqueFd(dup(0)), "/data", false});  // not a directory
    request.directories.push_back({UniqueFd(), "/none", false});
    const Result<LockedDown> locked = LockDown(std::move(request));
    _exit(!locked && locked.error().reason == "landlock" && locked.error().sys_errno != 0 ? 0
          : locked ? kExitNoLandlock
                   : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitNoLandlock) {
    GTEST_SKIP() << "the kernel has no Landlock";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace bulkhead::worker
