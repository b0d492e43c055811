// Which system calls a locked-down worker may make: tables that seccomp_filter.cc makes programs of
// when it is compiled, and that its tests read.
#pragma once

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstdint>
#include <initializer_list>

#include "worker/syscall_rule.h"

#if !defined(__x86_64__)
#error "the system call table is for x86-64"
#endif

namespace bulkhead::worker {

// Exactly what C libraries pass for a thread; anything else would be a process. CLONE_DETACHED,
// which the kernel ignores, is what musl adds.
inline constexpr std::uint32_t kThreadFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                              CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                              CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

// Flags of descriptors, and nothing that signals, leases or locks.
inline constexpr std::initializer_list<std::uint32_t> kFcntlCommands = {
    F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GET_SEALS};

inline constexpr std::uint32_t kSignBit = 1U << 31;

constexpr void AddDangerous(RuleList& rules) {
  Add(rules, Verdict::kKill,
      {// other programs and processes
       SYS_execve, SYS_execveat, SYS_fork, SYS_vfork, SYS_ptrace, SYS_process_vm_readv,
       SYS_process_vm_writev, SYS_process_madvise, SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo,
       SYS_rt_tgsigqueueinfo, SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_kcmp,
       // the network
       SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
       // attack surface of the kernel that no worker needs
       SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter,
       SYS_io_uring_register, SYS_io_setup, SYS_io_submit, SYS_keyctl, SYS_add_key, SYS_request_key,
       SYS_fanotify_init, SYS_lookup_dcookie, SYS_vmsplice, SYS_modify_ldt,
       // identity, name spaces and file systems
       SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid,
       SYS_setgroups, SYS_setfsuid, SYS_setfsgid, SYS_capset, SYS_unshare, SYS_setns, SYS_chroot,
       SYS_pivot_root, SYS_mount, SYS_umount2, SYS_fsopen, SYS_fspick, SYS_fsconfig, SYS_fsmount,
       SYS_open_tree, SYS_move_mount, SYS_mount_setattr, SYS_open_by_handle_at,
       SYS_name_to_handle_at, SYS_mknod, SYS_mknodat,
       // ways around the rules on executable memory
       SYS_pkey_mprotect, SYS_personality,
       // the machine
       SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load,
       SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_syslog, SYS_iopl,
       SYS_ioperm, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
       SYS_sethostname, SYS_setdomainname, SYS_vhangup});
}

// From lock-down on. A number that stands in no table gets kNotImplemented.
constexpr RuleList BaseRules() {
  RuleList rules;
  Add(rules, Verdict::kAllow,
      {// memory and threads
       SYS_futex, SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_sched_yield, SYS_rseq,
       SYS_set_robust_list, SYS_gettid, SYS_getpid, SYS_exit, SYS_exit_group,
       // signals of its own: a trap of the guest may arrive as one
       SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall,
       SYS_getrandom,
       // descriptors it holds
       SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv,
       SYS_pwritev, SYS_lseek, SYS_close, SYS_fstat, SYS_ftruncate, SYS_fallocate, SYS_fadvise64,
       SYS_fsync, SYS_fdatasync, SYS_poll, SYS_ppoll, SYS_eventfd2, SYS_recvmsg, SYS_sendmsg,
       SYS_shutdown});
  rules.push_back(AllowIf(SYS_clone, {OneOf(0, {kThreadFlags, kThreadFlags | CLONE_DETACHED})},
                          Verdict::kKill));
  // clone3 has its flags in memory, where a filter cannot see them. It is not listed: glibc then
  // uses clone.
  // Code is mapped writable, filled and then made executable: never both, and never executable from
  // the start.
  rules.push_back(AllowIf(SYS_mmap, {NoBitOf(2, PROT_EXEC)}, Verdict::kKill));
  rules.push_back(AllowIf(SYS_mprotect, {NotAllOf(2, PROT_WRITE | PROT_EXEC)}, Verdict::kKill));
  // A negative number is the processor time of another process, or a device.
  for (const int number : {SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep}) {
    rules.push_back(AllowIf(number, {NoBitOf(0, kSignBit)}, Verdict::kNotImplemented));
  }
  // Only of the calling thread: another number would tell which processes exist.
  rules.push_back(AllowIf(SYS_sched_getaffinity, {OneOf(0, {0})}, Verdict::kNotImplemented));
  rules.push_back(AllowIf(SYS_fcntl, {OneOf(1, kFcntlCommands)}, Verdict::kNotImplemented));
  // abort(3) signals its own thread.
  rules.push_back(AllowIf(SYS_tgkill, {OwnProcess(0)}, Verdict::kKill));
  // The step to the guest phase: its own memory limit, and one more filter.
  rules.push_back(
      AllowIf(SYS_prlimit64, {OneOf(0, {0}), OneOf(1, {RLIMIT_DATA})}, Verdict::kNotImplemented));
  rules.push_back(AllowIf(SYS_seccomp, {OneOf(0, {SECCOMP_SET_MODE_FILTER})}, Verdict::kKill));
  AddDangerous(rules);
  return rules;
}

// As well, if the guest may read directories, resp. write some: calls that take paths, where
// Landlock bounds what they reach. What Landlock does not watch (times, modes, owners, attributes)
// is done by descriptor, or not at all.
constexpr RuleList DirectoryRules() {
  RuleList rules;
  Add(rules, Verdict::kAllow, {SYS_openat2, SYS_getdents64, SYS_readlinkat});
  return rules;
}

constexpr RuleList WritableDirectoryRules() {
  RuleList rules;
  Add(rules, Verdict::kAllow, {SYS_mkdirat, SYS_unlinkat, SYS_renameat, SYS_linkat, SYS_symlinkat});
  // Of an open file: by path it would reach whatever the user owns.
  rules.push_back(AllowIf(SYS_utimensat, {Null(1)}, Verdict::kNotImplemented));
  return rules;
}

// On top, once the guest's code is compiled; a number not named here stays as the tables above have
// it.
constexpr RuleList GuestPhaseRules() {
  RuleList rules;
  rules.push_back(AllowIf(SYS_mprotect, {NoBitOf(2, PROT_EXEC)}, Verdict::kKill));
  Add(rules, Verdict::kKill, {SYS_prlimit64, SYS_seccomp});
  return rules;
}

}  // namespace bulkhead::worker
