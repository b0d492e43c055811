// Attempts to make processes, and to reach or outlive others.
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>

#include "hostile/attempts.h"
#include "process/raw_call.h"

namespace bulkhead::hostile {
namespace {

using process::Call;

constexpr long kInit = 1;
constexpr long kEverybody = -1;
constexpr long kAttach = 16;     // PTRACE_ATTACH
constexpr long kSeize = 0x4206;  // PTRACE_SEIZE
constexpr long kRealTime = 1;    // SCHED_FIFO
constexpr long kNiceMin = -20;
constexpr int kIoClassRealTime = 1 << 13;

template <long number, long first = 0, long second = 0, long third = 0>
long Plain(const Target& /*target*/) {
  return Call(number, first, second, third);
}

template <long number, long second = 0, long third = 0>
long OnSibling(const Target& target) {
  return Call(number, target.sibling, second, third);
}

template <long number, long second = 0, long third = 0>
long OnParent(const Target& target) {
  return Call(number, target.parent, second, third);
}

// Whatever became of a clone: the child must not go on as a second worker.
long Cloned(long result) {
  if (result == 0) {
    Call(__NR_exit_group, 0);
  }
  return result;
}

template <long flags>
long Clone(const Target& /*target*/) {
  return Cloned(Call(__NR_clone, flags, 0, 0, 0, 0));
}

long Clone3(const Target& /*target*/) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  return Cloned(Call(__NR_clone3, &arguments, sizeof arguments));
}

long Execute(const Target& /*target*/) {
  const char* const arguments[] = {"/bin/true", nullptr};
  return Call(__NR_execve, arguments[0], arguments, arguments + 1);
}

long ExecuteDescriptor(const Target& target) {
  constexpr int kEmptyPath = 0x1000;
  const char* const arguments[] = {"true", nullptr};
  return Call(__NR_execveat, target.held_stream, "", arguments, arguments + 1, kEmptyPath);
}

template <long number>
long Vector(const Target& target) {
  char buffer[16];
  const iovec local = {buffer, sizeof buffer};
  return Call(number, target.parent, &local, 1, &local, 1, 0);
}

long QueueSignal(const Target& target) {
  siginfo_t info{};
  info.si_code = -1;  // SI_QUEUE
  return Call(__NR_rt_sigqueueinfo, target.sibling, SIGTERM, &info);
}

template <int resource>
long RaiseLimit(const Target& /*target*/) {
  const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  return Call(__NR_prlimit64, 0, resource, &unlimited, 0);
}

long LimitSibling(const Target& target) {
  const rlimit none = {0, 0};
  return Call(__NR_prlimit64, target.sibling, RLIMIT_CPU, &none, 0);
}

// clockid_t of another process's processor time.
long ClockOfSibling(const Target& target) {
  timespec time{};
  return Call(__NR_clock_gettime, (~target.sibling << 3) | 2, &time);
}

long Schedule(const Target& /*target*/) {
  const int priority = 1;
  return Call(__NR_sched_setscheduler, 0, kRealTime, &priority);
}

const Attempt kRows[] = {
    {"fork", kKilled, [](const Target&) { return Cloned(Call(__NR_fork)); }},
    {"vfork", kKilled, Plain<__NR_vfork>},
    {"clone as fork", kKilled, Clone<SIGCHLD>},
    {"clone beside the parent", kKilled, Clone<CLONE_PARENT | SIGCHLD>},
    {"clone into namespaces", kKilled, Clone<CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD>},
    {"clone3", ENOSYS, Clone3},
    {"execve", kKilled, Execute},
    {"execveat of a descriptor", kKilled, ExecuteDescriptor},
    {"ptrace the parent", kKilled,
     [](const Target& target) { return Call(__NR_ptrace, kAttach, target.parent); }},
    {"ptrace a sibling", kKilled,
     [](const Target& target) { return Call(__NR_ptrace, kSeize, target.sibling); }},
    {"ptrace init", kKilled, Plain<__NR_ptrace, kAttach, kInit>},
    {"be traced", kKilled, Plain<__NR_ptrace>},
    {"read memory of the parent", kKilled, Vector<__NR_process_vm_readv>},
    {"write memory of the parent", kKilled, Vector<__NR_process_vm_writev>},
    {"advise on memory of others", kKilled, Plain<__NR_process_madvise, 1>},
    {"release memory of others", ENOSYS, Plain<__NR_process_mrelease, 1>},
    {"move pages of a sibling", ENOSYS, OnSibling<__NR_move_pages>},
    {"compare with the parent", kKilled, OnParent<__NR_kcmp, kInit>},
    {"pidfd of the parent", kKilled, OnParent<__NR_pidfd_open>},
    {"pidfd of a sibling", kKilled, OnSibling<__NR_pidfd_open>},
    {"pidfd of init", kKilled, Plain<__NR_pidfd_open, kInit>},
    {"descriptor of another process", kKilled, Plain<__NR_pidfd_getfd, 0, 0>},
    {"signal by pidfd", kKilled, Plain<__NR_pidfd_send_signal, 0, SIGKILL>},
    {"kill the parent", kKilled, OnParent<__NR_kill, SIGTERM>},
    {"kill a sibling", kKilled, OnSibling<__NR_kill, SIGTERM>},
    {"stop a sibling", kKilled, OnSibling<__NR_kill, SIGSTOP>},
    {"kill init", kKilled, Plain<__NR_kill, kInit, SIGKILL>},
    {"kill everybody", kKilled, Plain<__NR_kill, kEverybody, SIGTERM>},
    {"kill the own group", kKilled, Plain<__NR_kill, 0, SIGTERM>},
    {"tkill a sibling", kKilled, OnSibling<__NR_tkill, SIGTERM>},
    {"tgkill a sibling", kKilled,
     [](const Target& target) {
       return Call(__NR_tgkill, target.sibling, target.sibling, SIGTERM);
     }},
    {"queue a signal", kKilled, QueueSignal},
    {"queue a signal to a thread", kKilled, OnSibling<__NR_rt_tgsigqueueinfo>},
    {"signals of a descriptor to a sibling", ENOSYS,
     [](const Target& target) {
       return Call(__NR_fcntl, target.held_stream, F_SETOWN, target.sibling);
     }},
    {"setsid", ENOSYS, Plain<__NR_setsid>},
    {"setpgid", ENOSYS, Plain<__NR_setpgid>},
    {"outlive the parent", ENOSYS, Plain<__NR_prctl, PR_SET_PDEATHSIG, 0>},
    {"be dumpable", ENOSYS, Plain<__NR_prctl, PR_SET_DUMPABLE, 1>},
    {"adopt orphans", ENOSYS, Plain<__NR_prctl, PR_SET_CHILD_SUBREAPER, 1>},
    {"keep capabilities", ENOSYS, Plain<__NR_prctl, PR_SET_KEEPCAPS, 1>},
    {"priority of its own", ENOSYS, Plain<__NR_setpriority, PRIO_PROCESS, 0, kNiceMin>},
    {"priority of a sibling", ENOSYS,
     [](const Target& target) { return Call(__NR_setpriority, PRIO_PROCESS, target.sibling, 19); }},
    {"real time", ENOSYS, Schedule},
    {"processors of a sibling", ENOSYS, OnSibling<__NR_sched_setaffinity>},
    {"processors a sibling may use", ENOSYS,
     [](const Target& target) {
       unsigned long set[16];
       return Call(__NR_sched_getaffinity, target.sibling, sizeof set, set);
     }},
    {"processor time of a sibling", ENOSYS, ClockOfSibling},
    {"io priority", ENOSYS, Plain<__NR_ioprio_set, 1, 0, kIoClassRealTime>},
    {"wait for others", ENOSYS, Plain<__NR_wait4, kEverybody>},
    {"session of the parent", ENOSYS, OnParent<__NR_getsid>},
    {"raise the limit of open files", ENOSYS, RaiseLimit<RLIMIT_NOFILE>, kKilled},
    {"raise the limit of memory", EPERM, RaiseLimit<RLIMIT_DATA>, kKilled},
    {"raise the limit of processor time", ENOSYS, RaiseLimit<RLIMIT_CPU>, kKilled},
    {"core dumps", ENOSYS, RaiseLimit<RLIMIT_CORE>, kKilled},
    {"raise a limit the old way", ENOSYS,
     [](const Target&) {
       const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
       return Call(__NR_setrlimit, RLIMIT_FSIZE, &unlimited);
     }},
    {"limit a sibling", ENOSYS, LimitSibling, kKilled},
    {"timers that signal", ENOSYS,
     [](const Target&) {
       long timer = 0;
       return Call(__NR_timer_create, CLOCK_MONOTONIC, 0, &timer);
     }},
};

}  // namespace

const AttemptTable kProcesses = {kRows, sizeof kRows / sizeof kRows[0]};

}  // namespace bulkhead::hostile
