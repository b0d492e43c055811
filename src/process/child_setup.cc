#include "process/child_setup.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <concepts>
#include <type_traits>

// Instrumented code would leave marks in shadow memory that the parent goes on using.
#define BH_CHILD_CODE \
  __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))

namespace bulkhead::process {
namespace {

constexpr int kSignalMax = 64;  // _NSIG; the C library hides two of them
constexpr std::size_t kSignalSetBytes = 8;
constexpr mode_t kUmask = 077;
constexpr int kExecFailedStatus = 127;  // as shells have it; nobody reads it
constexpr int kNiceBase = 20;           // the system call getpriority answers 20 - nice

// Room for some hundred entries of /proc/self/fd at a time.
constexpr std::size_t kDirectoryBufferBytes = 4096;

template <class T>
  requires std::integral<T> || std::is_enum_v<T>
BH_CHILD_CODE long Word(T value) {
  return static_cast<long>(value);
}

template <class T>
BH_CHILD_CODE long Word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

// 0 or more: the result; less: -errno. Arguments not given are 0, which some calls insist on. The C
// library's own wrappers would not do: sanitizers intercept them.
template <class... Arguments>
BH_CHILD_CODE long Call(long number, Arguments... arguments) {
  const long result = syscall(number, Word(arguments)..., 0L, 0L, 0L, 0L, 0L);
  return result == -1 ? -errno : result;
}

[[noreturn]] BH_CHILD_CODE void Exit() {
  for (;;) {
    Call(SYS_exit_group, kExecFailedStatus);
  }
}

[[noreturn]] BH_CHILD_CODE void Fail(ChildPlan& plan, LaunchStage stage, long negative_errno) {
  plan.failed_stage = stage;
  plan.error = static_cast<int>(-negative_errno);
  Exit();
}

BH_CHILD_CODE void Check(ChildPlan& plan, LaunchStage stage, long result) {
  if (result < 0) {
    Fail(plan, stage, result);
  }
}

BH_CHILD_CODE void WriteProc(ChildPlan& plan, const char* path, const char* text) {
  const long file = Call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
  Check(plan, LaunchStage::kNamespaces, file);
  std::size_t length = 0;
  while (text[length] != '\0') {
    ++length;
  }
  Check(plan, LaunchStage::kNamespaces, Call(SYS_write, file, text, length));
  Call(SYS_close, file);
}

// The clone made them; here they become usable.
BH_CHILD_CODE void FurnishNamespaces(ChildPlan& plan) {
  if (plan.user_map != nullptr) {
    // The kernel wants setgroups(2) given up first.
    WriteProc(plan, "/proc/self/setgroups", "deny");
    WriteProc(plan, "/proc/self/uid_map", plan.user_map);
    WriteProc(plan, "/proc/self/gid_map", plan.group_map);
  }
  if (plan.own_mounts) {
    // What is mounted in here must not appear outside. Fails where a security module grants the
    // namespaces and then no rights in them.
    Check(plan, LaunchStage::kNamespaces, Call(SYS_mount, "none", "/", 0, MS_REC | MS_PRIVATE, 0));
  }
}

// Own session and group; dies with the parent's thread, also when that died before we could ask for
// it: the parent is then somebody else, be it pid 1 or a subreaper.
BH_CHILD_CODE void Contain(ChildPlan& plan) {
  Check(plan, LaunchStage::kContainment, Call(SYS_setsid));
  Check(plan, LaunchStage::kContainment, Call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL));
  // From within a pid namespace the parent is 0 either way; init then finds its reports unread.
  if (plan.parent != 0 && Call(SYS_getppid) != plan.parent) {
    Exit();
  }
  for (; plan.joined < plan.membership_count; ++plan.joined) {
    const long joined = Call(SYS_write, plan.memberships[plan.joined], "0", 1);
    plan.failed_joining = joined < 0;
    Check(plan, LaunchStage::kContainment, joined);
  }
  // A set-uid program would drop the parent-death signal and leave our reach.
  Check(plan, LaunchStage::kContainment, Call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1));
}

// A handler of the parent must not run here, and an ignored signal would stay ignored in the
// worker.
BH_CHILD_CODE void ResetSignals() {
  const unsigned long default_action[4] = {};  // the kernel's struct sigaction: SIG_DFL, no flags
  for (int signal = 1; signal <= kSignalMax; ++signal) {
    Call(SYS_rt_sigaction, signal, default_action, 0, kSignalSetBytes);
  }
}

// A host that runs in real time or with raised priority does so for itself.
BH_CHILD_CODE void ResetScheduling() {
  const long policy = Call(SYS_sched_getscheduler, 0) & ~SCHED_RESET_ON_FORK;
  if (policy == SCHED_FIFO || policy == SCHED_RR) {
    const int priority = 0;  // struct sched_param
    Call(SYS_sched_setscheduler, 0, SCHED_NORMAL, &priority);
  }
  if (Call(SYS_getpriority, PRIO_PROCESS, 0) > kNiceBase) {
    Call(SYS_setpriority, PRIO_PROCESS, 0, 0);
  }
}

BH_CHILD_CODE bool IsTarget(const ChildPlan& plan, int fd) {
  for (std::size_t i = 0; i < plan.move_count; ++i) {
    if (plan.moves[i].target == fd) {
      return true;
    }
  }
  return false;
}

// "123" -> 123; -1 if it is not a number.
BH_CHILD_CODE int ParseFd(const char* name) {
  int fd = 0;
  for (const char* at = name; *at != '\0'; ++at) {
    if (*at < '0' || *at > '9') {
      return -1;
    }
    fd = fd * 10 + (*at - '0');
  }
  return *name == '\0' ? -1 : fd;
}

// Where close_range is refused (some seccomp profiles): the exact list from /proc; a loop to the
// limit would take minutes where the limit is a billion.
BH_CHILD_CODE void CloseListed(ChildPlan& plan) {
  struct Entry {  // linux_dirent64
    std::uint64_t inode;
    std::int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[1];
  };

  const long directory =
      Call(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  Check(plan, LaunchStage::kDescriptors, directory);
  alignas(Entry) char buffer[kDirectoryBufferBytes];
  for (;;) {
    const long filled = Call(SYS_getdents64, directory, buffer, sizeof buffer);
    Check(plan, LaunchStage::kDescriptors, filled);
    if (filled == 0) {
      break;
    }
    for (long at = 0; at < filled;) {
      const Entry* entry = reinterpret_cast<const Entry*>(buffer + at);
      const int fd = ParseFd(entry->name);
      if (fd >= 0 && fd != directory && fd != plan.program_fd && !IsTarget(plan, fd)) {
        Call(SYS_close, fd);
      }
      at += entry->length;
    }
  }
  Call(SYS_close, directory);
}

// Everything between the targets and behind them, but the program to execute.
BH_CHILD_CODE void CloseOthers(ChildPlan& plan) {
  unsigned first = 0;
  for (std::size_t i = 0; i <= plan.move_count; ++i) {
    const bool behind_all = i == plan.move_count;
    if (behind_all && plan.program_fd < 0) {
      break;
    }
    const auto kept = static_cast<unsigned>(behind_all ? plan.program_fd : plan.moves[i].target);
    if (kept > first && Call(SYS_close_range, first, kept - 1) < 0) {
      CloseListed(plan);
      return;
    }
    first = kept + 1;
  }
  if (Call(SYS_close_range, first, ~0U) < 0) {
    CloseListed(plan);
  }
}

// First everything that lies where a target goes is moved out of the way, so that no source is
// overwritten before its turn.
BH_CHILD_CODE void ArrangeDescriptors(ChildPlan& plan) {
  const int above = plan.move_count == 0 ? 0 : plan.moves[plan.move_count - 1].target + 1;
  for (std::size_t i = 0; i < plan.move_count; ++i) {
    if (plan.moves[i].source < above) {
      const long moved = Call(SYS_fcntl, plan.moves[i].source, F_DUPFD_CLOEXEC, above);
      Check(plan, LaunchStage::kDescriptors, moved);
      plan.moves[i].source = static_cast<int>(moved);
    }
  }
  if (plan.program_fd >= 0 && plan.program_fd < above) {
    const long moved = Call(SYS_fcntl, plan.program_fd, F_DUPFD_CLOEXEC, above);
    Check(plan, LaunchStage::kDescriptors, moved);
    plan.program_fd = static_cast<int>(moved);
  }
  for (std::size_t i = 0; i < plan.move_count; ++i) {
    Check(plan, LaunchStage::kDescriptors,
          Call(SYS_dup3, plan.moves[i].source, plan.moves[i].target, 0));
  }
  CloseOthers(plan);
}

// Last, because a limit binds the set-up as well.
BH_CHILD_CODE void ApplyLimits(ChildPlan& plan) {
  for (std::size_t i = 0; i < plan.limit_count; ++i) {
    Check(plan, LaunchStage::kContainment,
          Call(SYS_prlimit64, 0, plan.limits[i].resource, &plan.limits[i].value, 0));
  }
}

[[noreturn]] BH_CHILD_CODE void Execute(ChildPlan& plan) {
  const char* const environment[] = {nullptr};
  const unsigned long no_signals = 0;
  Call(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, 0, kSignalSetBytes);
  const long result =
      plan.program_fd >= 0
          ? Call(SYS_execveat, plan.program_fd, "", plan.arguments, environment, AT_EMPTY_PATH)
          : Call(SYS_execve, plan.arguments[0], plan.arguments, environment);
  Fail(plan, plan.is_init ? LaunchStage::kNamespaces : LaunchStage::kExec, result);
}

}  // namespace

BH_CHILD_CODE int RunChild(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  plan.started = true;
  ResetSignals();
  FurnishNamespaces(plan);
  Contain(plan);
  ResetScheduling();
  Call(SYS_umask, kUmask);
  Check(plan, LaunchStage::kWorkingDirectory, Call(SYS_chdir, plan.working_directory));
  ArrangeDescriptors(plan);
  ApplyLimits(plan);
  Execute(plan);
}

}  // namespace bulkhead::process
