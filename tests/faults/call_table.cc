#include "faults/call_table.h"

#include <string.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "faults/call_tracer.h"

namespace bulkhead::test {
namespace {

constexpr CallErrors::List kDescriptor = {EMFILE, ENFILE, ENOMEM};
constexpr CallErrors::List kPath = {ENOMEM, EIO};

// Those that the manual gives for the call and that a machine in trouble produces; EPERM where a
// container's rules may forbid it.
constexpr auto kTable = std::to_array<CallErrors>({
    {SYS_read, "read", {EINTR, EIO}},
    {SYS_read + kOnEvent, "read of an event", {EINTR}},
    {SYS_write + kOnEvent, "write of an event", {EINTR}},
    {SYS_pread64, "pread64", {EINTR, EIO}},
    {SYS_write, "write", {EINTR, EIO, ENOSPC, EPIPE}},
    {SYS_writev, "writev", {EINTR, EIO, ENOSPC, EPIPE}},
    {SYS_pwrite64, "pwrite64", {EINTR, EIO, ENOSPC}},
    {SYS_pwritev, "pwritev", {EINTR, EIO, ENOSPC}},
    {SYS_sendfile, "sendfile", {EIO, ENOMEM}},
    {SYS_copy_file_range, "copy_file_range", {EIO, ENOMEM, ENOSPC}},
    {SYS_close, "close", {EINTR, EIO}, true},
    {SYS_close_range, "close_range", {EMFILE, ENOMEM}},
    {SYS_open, "open", {EMFILE, ENFILE, ENOMEM, EIO, EINTR}},
    {SYS_openat, "openat", {EMFILE, ENFILE, ENOMEM, EIO, EINTR, ENOSPC}},
    {SYS_openat2, "openat2", {EMFILE, ENFILE, ENOMEM, EIO, EINTR, EAGAIN, ENOSPC}},
    {SYS_fstat, "fstat", kPath},
    {SYS_newfstatat, "newfstatat", kPath},
    {SYS_statx, "statx", kPath},
    {SYS_fstatfs, "fstatfs", kPath},
    {SYS_statfs, "statfs", kPath},
    {SYS_access, "access", kPath},
    {SYS_faccessat, "faccessat", kPath},
    {SYS_faccessat2, "faccessat2", kPath},
    {SYS_readlink, "readlink", kPath},
    {SYS_readlinkat, "readlinkat", kPath},
    {SYS_getdents64, "getdents64", kPath},
    {SYS_getcwd, "getcwd", kPath},
    {SYS_chdir, "chdir", kPath},
    {SYS_fchdir, "fchdir", kPath},
    {SYS_mkdir, "mkdir", {ENOSPC, ENOMEM, EIO}},
    {SYS_mkdirat, "mkdirat", {ENOSPC, ENOMEM, EIO}},
    {SYS_rmdir, "rmdir", kPath},
    {SYS_unlink, "unlink", kPath},
    {SYS_unlinkat, "unlinkat", kPath},
    {SYS_renameat, "renameat", {ENOSPC, ENOMEM, EIO}},
    {SYS_renameat2, "renameat2", {ENOSPC, ENOMEM, EIO}},
    {SYS_fchmod, "fchmod", {EIO}},
    {SYS_utimensat, "utimensat", {EIO}},
    {SYS_getxattr, "getxattr", kPath},
    {SYS_fgetxattr, "fgetxattr", kPath},
    {SYS_setxattr, "setxattr", {ENOMEM, ENOSPC, EIO}},
    {SYS_fsetxattr, "fsetxattr", {ENOMEM, ENOSPC, EIO}},
    {SYS_flock, "flock", {EINTR, ENOMEM, EAGAIN}},
    {SYS_fsync, "fsync", {EIO, ENOSPC, EINTR}},
    {SYS_fdatasync, "fdatasync", {EIO, ENOSPC, EINTR}},
    {SYS_ftruncate, "ftruncate", {EIO, EINTR, ENOSPC}},
    {SYS_fallocate, "fallocate", {EIO, EINTR, ENOSPC}},
    {SYS_lseek, "lseek", {EIO}},
    {SYS_fcntl, "fcntl", {EMFILE, EINTR}},
    {SYS_ioctl, "ioctl", {EIO}},
    {SYS_dup, "dup", kDescriptor},
    {SYS_dup3, "dup3", {EMFILE, EINTR}},
    {SYS_pipe2, "pipe2", kDescriptor},
    {SYS_eventfd2, "eventfd2", kDescriptor},
    {SYS_memfd_create, "memfd_create", kDescriptor},
    {SYS_epoll_create1, "epoll_create1", kDescriptor},
    {SYS_epoll_ctl, "epoll_ctl", {ENOMEM, ENOSPC}},
    {SYS_epoll_wait, "epoll_wait", {EINTR}},
    {SYS_poll, "poll", {EINTR, ENOMEM}},
    {SYS_ppoll, "ppoll", {EINTR, ENOMEM}},
    {SYS_socketpair, "socketpair", kDescriptor},
    {SYS_setsockopt, "setsockopt", {ENOMEM}},
    {SYS_getsockopt, "getsockopt", {ENOMEM}},
    {SYS_sendmsg, "sendmsg", {EINTR, EAGAIN, ENOMEM, EPIPE}},
    {SYS_recvmsg, "recvmsg", {EINTR, EAGAIN, ENOMEM}},
    {SYS_mmap, "mmap", {ENOMEM, EAGAIN}},
    {SYS_mremap, "mremap", {ENOMEM}},
    {SYS_munmap, "munmap", {ENOMEM}},
    {SYS_mprotect, "mprotect", {ENOMEM}},
    {SYS_madvise, "madvise", {ENOMEM, EAGAIN}},
    {SYS_sigaltstack, "sigaltstack", {ENOMEM}},
    {SYS_clone, "clone", {EAGAIN, ENOMEM, ENOSPC}},
    {SYS_clone3, "clone3", {EAGAIN, ENOMEM, ENOSPC}},
    {SYS_execve, "execve", {ENOMEM, EIO, EMFILE, EAGAIN}},
    {SYS_execveat, "execveat", {ENOMEM, EIO, EMFILE, EAGAIN}},
    {SYS_wait4, "wait4", {EINTR}},
    {SYS_waitid, "waitid", {EINTR}},
    {SYS_pidfd_open, "pidfd_open", kDescriptor},
    {SYS_pidfd_send_signal, "pidfd_send_signal", {EPERM}},
    {SYS_kill, "kill", {EPERM}},
    {SYS_nanosleep, "nanosleep", {EINTR}},
    {SYS_clock_nanosleep, "clock_nanosleep", {EINTR}},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", {EINTR, EAGAIN}},
    {SYS_getrandom, "getrandom", {EINTR}},
    {SYS_setsid, "setsid", {EPERM}},
    {SYS_prctl, "prctl", {EPERM}},
    {SYS_arch_prctl, "arch_prctl", {EPERM}},
    {SYS_prlimit64, "prlimit64", {EPERM}},
    {SYS_capset, "capset", {EPERM}},
    {SYS_setresuid, "setresuid", {EAGAIN, EPERM}},
    {SYS_setresgid, "setresgid", {EAGAIN, EPERM}},
    {SYS_setgroups, "setgroups", {ENOMEM, EPERM}},
    {SYS_setpriority, "setpriority", {EPERM}},
    {SYS_sched_setscheduler, "sched_setscheduler", {EPERM}},
    {SYS_mount, "mount", {ENOMEM, ENOSPC, EPERM}},
    {SYS_umount2, "umount2", {ENOMEM, EPERM}},
    {SYS_pivot_root, "pivot_root", {ENOMEM, EPERM}},
    {SYS_chroot, "chroot", {ENOMEM, EPERM}},
    {SYS_fsopen, "fsopen", {EMFILE, ENOMEM, EPERM}},
    {SYS_fsconfig, "fsconfig", {ENOMEM, EPERM}},
    {SYS_fsmount, "fsmount", {EMFILE, ENOMEM, EPERM}},
    {SYS_open_tree, "open_tree", {EMFILE, ENOMEM, EPERM}},
    {SYS_move_mount, "move_mount", {ENOMEM, EPERM}},
    {SYS_mount_setattr, "mount_setattr", {ENOMEM, EPERM}},
    {SYS_unshare, "unshare", {ENOMEM, ENOSPC, EPERM}},
    {SYS_seccomp, "seccomp", {ENOMEM, EPERM}},
    {SYS_landlock_create_ruleset, "landlock_create_ruleset", {EMFILE, ENOMEM, EPERM}},
    {SYS_landlock_add_rule, "landlock_add_rule", {ENOMEM, EPERM}},
    {SYS_landlock_restrict_self, "landlock_restrict_self", {ENOMEM, EPERM}},
    {SYS_brk, "brk", {}},      // tells by its answer, which is an address
    {SYS_futex, "futex", {}},  // inside locks, as chance has it; they wait again
    {SYS_rt_sigaction, "rt_sigaction", {}},
    {SYS_rt_sigprocmask, "rt_sigprocmask", {}},
    {SYS_rt_sigpending, "rt_sigpending", {}},
    {SYS_rt_sigreturn, "rt_sigreturn", {}},
    {SYS_umask, "umask", {}},
    {SYS_uname, "uname", {}},
    {SYS_sysinfo, "sysinfo", {}},
    {SYS_getrusage, "getrusage", {}},
    {SYS_getpid, "getpid", {}},
    {SYS_getppid, "getppid", {}},
    {SYS_gettid, "gettid", {}},
    {SYS_getuid, "getuid", {}},
    {SYS_geteuid, "geteuid", {}},
    {SYS_getgid, "getgid", {}},
    {SYS_getegid, "getegid", {}},
    {SYS_capget, "capget", {}},
    {SYS_getpriority, "getpriority", {}},
    {SYS_sched_getscheduler, "sched_getscheduler", {}},
    {SYS_sched_getaffinity, "sched_getaffinity", {}},
    {SYS_sched_yield, "sched_yield", {}},
    {SYS_restart_syscall, "restart_syscall", {}},
    {SYS_set_tid_address, "set_tid_address", {}},
    {SYS_set_robust_list, "set_robust_list", {}},
    {SYS_rseq, "rseq", {}},
    {SYS_exit, "exit", {}},
    {SYS_exit_group, "exit_group", {}},
});

}  // namespace

const CallErrors* ErrorsOf(long call) {
  const auto* const found = std::ranges::find(kTable, call, &CallErrors::call);
  return found == kTable.end() ? nullptr : found;
}

std::string ErrnoName(int sys_errno) {
  return strerrorname_np(sys_errno);
}

}  // namespace bulkhead::test
