// What the filters of a worker permit, stated a second time and by hand. The tables say it in their
// own way; what the kernel gets must do what stands here, for every number and every kind of
// argument, and hold nothing that decides nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "worker/filter_support_test.h"

namespace bulkhead::worker {
namespace {

constexpr std::uint32_t kX32Bit = 0x40000000;
// Neither a flag set nor a pointer nor a number that is listed anywhere.
constexpr std::uint64_t kOddWord = 0xDEADBEEF12345678;
constexpr std::uint64_t kAboveLowWord = 1ULL << 32;

constexpr std::array kAllUses = {DirectoryUse::kNone, DirectoryUse::kReadOnly,
                                 DirectoryUse::kWritable};

// Permitted whatever the arguments are.
const std::set<int> kPermitted = {
    SYS_read,           SYS_write,        SYS_readv,       SYS_writev,
    SYS_pread64,        SYS_pwrite64,     SYS_preadv,      SYS_pwritev,
    SYS_lseek,          SYS_close,        SYS_fstat,       SYS_ftruncate,
    SYS_fallocate,      SYS_fadvise64,    SYS_fsync,       SYS_fdatasync,
    SYS_poll,           SYS_ppoll,        SYS_eventfd2,    SYS_recvmsg,
    SYS_sendmsg,        SYS_shutdown,     SYS_futex,       SYS_munmap,
    SYS_mremap,         SYS_madvise,      SYS_brk,         SYS_sched_yield,
    SYS_rseq,           SYS_gettid,       SYS_getpid,      SYS_set_robust_list,
    SYS_exit,           SYS_exit_group,   SYS_getrandom,   SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall};

// Permitted to a worker whose guest has directories; to others as if the kernel had no such call.
const std::set<int> kPermittedWithDirectories = {SYS_openat2, SYS_getdents64, SYS_readlinkat};
// The same if one of them may be written.
const std::set<int> kPermittedWithWritableOnes = {SYS_mkdirat, SYS_unlinkat, SYS_renameat,
                                                  SYS_linkat, SYS_symlinkat};

// The end of the process.
const std::set<int> kDeadly = {SYS_execve,
                               SYS_execveat,
                               SYS_fork,
                               SYS_vfork,
                               SYS_ptrace,
                               SYS_process_vm_readv,
                               SYS_process_vm_writev,
                               SYS_process_madvise,
                               SYS_kill,
                               SYS_tkill,
                               SYS_rt_sigqueueinfo,
                               SYS_rt_tgsigqueueinfo,
                               SYS_pidfd_open,
                               SYS_pidfd_getfd,
                               SYS_pidfd_send_signal,
                               SYS_kcmp,
                               SYS_socket,
                               SYS_socketpair,
                               SYS_connect,
                               SYS_bind,
                               SYS_listen,
                               SYS_accept,
                               SYS_accept4,
                               SYS_bpf,
                               SYS_perf_event_open,
                               SYS_userfaultfd,
                               SYS_io_uring_setup,
                               SYS_io_uring_enter,
                               SYS_io_uring_register,
                               SYS_io_setup,
                               SYS_io_submit,
                               SYS_keyctl,
                               SYS_add_key,
                               SYS_request_key,
                               SYS_fanotify_init,
                               SYS_lookup_dcookie,
                               SYS_vmsplice,
                               SYS_modify_ldt,
                               SYS_setuid,
                               SYS_setgid,
                               SYS_setreuid,
                               SYS_setregid,
                               SYS_setresuid,
                               SYS_setresgid,
                               SYS_setgroups,
                               SYS_setfsuid,
                               SYS_setfsgid,
                               SYS_capset,
                               SYS_unshare,
                               SYS_setns,
                               SYS_chroot,
                               SYS_pivot_root,
                               SYS_mount,
                               SYS_umount2,
                               SYS_fsopen,
                               SYS_fspick,
                               SYS_fsconfig,
                               SYS_fsmount,
                               SYS_open_tree,
                               SYS_move_mount,
                               SYS_mount_setattr,
                               SYS_open_by_handle_at,
                               SYS_name_to_handle_at,
                               SYS_mknod,
                               SYS_mknodat,
                               SYS_pkey_mprotect,
                               SYS_personality,
                               SYS_init_module,
                               SYS_finit_module,
                               SYS_delete_module,
                               SYS_kexec_load,
                               SYS_kexec_file_load,
                               SYS_reboot,
                               SYS_swapon,
                               SYS_swapoff,
                               SYS_acct,
                               SYS_quotactl,
                               SYS_syslog,
                               SYS_iopl,
                               SYS_ioperm,
                               SYS_settimeofday,
                               SYS_clock_settime,
                               SYS_clock_adjtime,
                               SYS_adjtimex,
                               SYS_sethostname,
                               SYS_setdomainname,
                               SYS_vhangup};

constexpr std::uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                  CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                                  CLONE_CHILD_CLEARTID;

// A call whose arguments decide.
struct Conditional {
  seccomp_data call;
  std::uint32_t plain;  // without directories, and with such as can only be read
  std::uint32_t writable;
  std::uint32_t
      guest_phase;  // of plain; beside the filter of the lock-down, of which the stricter counts
};

std::vector<Conditional> SameInAll(std::uint32_t verdict, std::vector<seccomp_data> calls) {
  std::vector<Conditional> rows;
  for (const seccomp_data& call : calls) {
    rows.push_back({call, verdict, verdict, verdict});
  }
  return rows;
}

void Append(std::vector<Conditional>& rows, std::vector<Conditional> more) {
  rows.insert(rows.end(), more.begin(), more.end());
}

void AddProcessRows(std::vector<Conditional>& rows, std::uint64_t own) {
  Append(rows,
         SameInAll(kAllow, {Call(SYS_clone, {kThread}), Call(SYS_clone, {kThread | CLONE_DETACHED}),
                            Call(SYS_tgkill, {own, own, SIGABRT}),
                            Call(SYS_sched_getaffinity, {0, 128, kOddWord})}));
  // One flag more or less, a namespace, a plain fork, a vfork.
  std::vector<seccomp_data> deadly = {
      Call(SYS_clone), Call(SYS_clone, {SIGCHLD}), Call(SYS_clone, {kThread | CLONE_NEWUSER}),
      Call(SYS_clone, {CLONE_VM | CLONE_VFORK | SIGCHLD}), Call(SYS_clone, {kOddWord})};
  for (std::uint64_t flag = 1; flag < kAboveLowWord; flag <<= 1) {
    if (flag != CLONE_DETACHED) {
      deadly.push_back(Call(SYS_clone, {kThread ^ flag}));
    }
  }
  for (const std::uint64_t other :
       {std::uint64_t{0}, std::uint64_t{1}, own + 1, ~std::uint64_t{0}}) {
    deadly.push_back(Call(SYS_tgkill, {other, own, SIGABRT}));
  }
  Append(rows, SameInAll(kKill, deadly));
  Append(rows, SameInAll(kNotImplemented,
                         {Call(SYS_sched_getaffinity, {1}), Call(SYS_sched_getaffinity, {own})}));
}

void AddMemoryRows(std::vector<Conditional>& rows) {
  constexpr std::uint64_t kData = PROT_READ | PROT_WRITE;
  constexpr std::uint64_t kCode = PROT_READ | PROT_EXEC;
  constexpr std::uint64_t kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
  Append(rows,
         SameInAll(kAllow, {Call(SYS_mmap), Call(SYS_mmap, {0, 1, kData}),
                            Call(SYS_mmap, {0, 1, PROT_NONE}), Call(SYS_mprotect),
                            Call(SYS_mprotect, {0, 1, kData}), Call(SYS_mprotect, {0, 1, 1})}));
  Append(rows,
         SameInAll(kKill, {Call(SYS_mmap, {0, 1, kCode}), Call(SYS_mmap, {0, 1, kAll}),
                           Call(SYS_mmap, {0, 1, PROT_EXEC}), Call(SYS_mprotect, {0, 1, kAll}),
                           Call(SYS_mprotect, {0, 1, PROT_WRITE | PROT_EXEC})}));
  for (const std::uint64_t code : {kCode, std::uint64_t{PROT_EXEC}}) {
    rows.push_back({Call(SYS_mprotect, {0, 1, code}), kAllow, kAllow, kKill});
  }
}

void AddLimitRows(std::vector<Conditional>& rows) {
  rows.push_back({Call(SYS_prlimit64, {0, RLIMIT_DATA, kOddWord}), kAllow, kAllow, kKill});
  for (const int other : {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_AS}) {
    rows.push_back({Call(SYS_prlimit64, {0, static_cast<std::uint64_t>(other)}), kNotImplemented,
                    kNotImplemented, kKill});
  }
  for (const std::uint64_t process : {std::uint64_t{1}, kOddWord}) {
    rows.push_back(
        {Call(SYS_prlimit64, {process, RLIMIT_DATA}), kNotImplemented, kNotImplemented, kKill});
  }
  rows.push_back({Call(SYS_seccomp, {SECCOMP_SET_MODE_FILTER}), kAllow, kAllow, kKill});
  Append(rows, SameInAll(kKill, {Call(SYS_seccomp, {SECCOMP_SET_MODE_STRICT}),
                                 Call(SYS_seccomp, {SECCOMP_GET_NOTIF_SIZES})}));
}

void AddDescriptorAndTimeRows(std::vector<Conditional>& rows) {
  std::vector<seccomp_data> allowed;
  for (const int command : {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GET_SEALS}) {
    allowed.push_back(Call(SYS_fcntl, {3, static_cast<std::uint64_t>(command), kOddWord}));
  }
  std::vector<seccomp_data> refused;
  for (const int command : {F_DUPFD, F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE, F_NOTIFY, F_SETLK,
                            F_SETLKW, F_OFD_SETLK, F_ADD_SEALS, F_SETPIPE_SZ}) {
    refused.push_back(Call(SYS_fcntl, {3, static_cast<std::uint64_t>(command), kOddWord}));
  }
  for (const int number : {SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep}) {
    for (const clockid_t id : {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID}) {
      allowed.push_back(Call(number, {static_cast<std::uint64_t>(id), kOddWord}));
    }
    // The processor time of process 1, as a 32-bit and as a sign-extended word.
    refused.push_back(Call(number, {0xFFFFFFF2}));
    refused.push_back(Call(number, {~std::uint64_t{13}}));
  }
  Append(rows, SameInAll(kAllow, allowed));
  Append(rows, SameInAll(kNotImplemented, refused));
  rows.push_back({Call(SYS_utimensat, {5, 0, kOddWord}), kNotImplemented, kAllow, kNotImplemented});
  Append(rows, SameInAll(kNotImplemented,
                         {Call(SYS_utimensat, {5, 1}), Call(SYS_utimensat, {5, kAboveLowWord}),
                          Call(SYS_utimensat, {5, kOddWord})}));
}

std::vector<Conditional> Conditionals() {
  std::vector<Conditional> rows;
  AddProcessRows(rows, static_cast<std::uint64_t>(getpid()));
  AddMemoryRows(rows);
  AddLimitRows(rows);
  AddDescriptorAndTimeRows(rows);
  return rows;
}

std::set<int> ConditionalNumbers() {
  std::set<int> numbers;
  for (const Conditional& row : Conditionals()) {
    numbers.insert(row.call.nr);
  }
  return numbers;
}

// Calls that make each filter show all it does.
std::vector<seccomp_data> AllProbes() {
  std::vector<seccomp_data> probes;
  for (int number = 0; number < kSyscallNumbersTried; ++number) {
    probes.push_back(Call(number));
  }
  for (const Conditional& row : Conditionals()) {
    probes.push_back(row.call);
  }
  probes.push_back(Call(SYS_read | static_cast<int>(kX32Bit)));
  probes.push_back(Call(SYS_read));
  probes.back().arch = AUDIT_ARCH_I386;
  return probes;
}

// The kernel asks all filters; the strictest answer counts.
std::uint32_t Stricter(std::uint32_t one, std::uint32_t other) {
  if (one == kKill || other == kKill) {
    return kKill;
  }
  return one == kAllow ? other : one;
}

std::uint32_t Stated(int number, DirectoryUse use) {
  if (kPermitted.contains(number) ||
      (use != DirectoryUse::kNone && kPermittedWithDirectories.contains(number)) ||
      (use == DirectoryUse::kWritable && kPermittedWithWritableOnes.contains(number))) {
    return kAllow;
  }
  return kDeadly.contains(number) ? kKill : kNotImplemented;
}

std::vector<FilterSpec> AllSpecs() {
  return {LockdownFilter(DirectoryUse::kNone), LockdownFilter(DirectoryUse::kReadOnly),
          LockdownFilter(DirectoryUse::kWritable), GuestPhaseFilter()};
}

TEST(Bar, R12EveryNumberDoesWhatIsStated) {
  const std::set<int> conditional = ConditionalNumbers();
  const Filter guest_phase(GuestPhaseFilter());
  for (const DirectoryUse use : kAllUses) {
    const Filter lockdown(LockdownFilter(use));
    for (int number = 0; number < kSyscallNumbersTried; ++number) {
      if (conditional.contains(number)) {
        continue;
      }
      for (const std::uint64_t word : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{PROT_EXEC},
                                       kThread, kOddWord, ~std::uint64_t{0}}) {
        const seccomp_data call = Call(number, {word, word, word, word, word, word});
        ASSERT_EQ(lockdown(call), Stated(number, use)) << number << ", " << word;
        ASSERT_EQ(Stricter(lockdown(call), guest_phase(call)), Stated(number, use))
            << number << ", " << word << " in the guest phase";
      }
    }
  }
}

TEST(Bar, R12ArgumentsDecideAsStated) {
  const Filter plain(LockdownFilter(DirectoryUse::kNone));
  const Filter read_only(LockdownFilter(DirectoryUse::kReadOnly));
  const Filter writable(LockdownFilter(DirectoryUse::kWritable));
  const Filter guest_phase(GuestPhaseFilter());
  for (const Conditional& row : Conditionals()) {
    const std::string trace =
        std::to_string(row.call.nr) + " with " + std::to_string(row.call.args[0]) + ", " +
        std::to_string(row.call.args[1]) + ", " + std::to_string(row.call.args[2]);
    EXPECT_EQ(plain(row.call), row.plain) << trace;
    EXPECT_EQ(read_only(row.call), row.plain) << trace;
    EXPECT_EQ(writable(row.call), row.writable) << trace;
    EXPECT_EQ(Stricter(plain(row.call), guest_phase(row.call)), row.guest_phase) << trace;
  }
}

TEST(Bar, R12OtherConventionsAreDeadlyInEveryFilter) {
  for (const FilterSpec& spec : AllSpecs()) {
    const Filter filter(spec);
    for (int number = 0; number < kSyscallNumbersTried; ++number) {
      ASSERT_EQ(filter(Call(number | static_cast<int>(kX32Bit))), kKill) << number;
      for (const std::uint32_t foreign :
           {std::uint32_t{AUDIT_ARCH_I386}, std::uint32_t{AUDIT_ARCH_AARCH64}, 0U, ~0U}) {
        seccomp_data call = Call(number);
        call.arch = foreign;
        ASSERT_EQ(filter(call), kKill) << number << ", architecture " << foreign;
      }
    }
  }
}

TEST(Bar, R12EveryInstructionIsReached) {
  const std::vector<seccomp_data> probes = AllProbes();
  for (const FilterSpec& spec : AllSpecs()) {
    const BpfCode program = Filter(spec).code();
    std::set<std::size_t> reached;
    for (const seccomp_data& probe : probes) {
      const Evaluation evaluation = Evaluate(program, probe);
      reached.insert(evaluation.executed.begin(), evaluation.executed.end());
    }
    for (std::size_t pc = 0; pc < program.size(); ++pc) {
      EXPECT_TRUE(reached.contains(pc)) << "instruction " << pc << " of " << program.size();
    }
  }
}

// Some probe is answered otherwise than by the whole filter.
bool Decides(const FilterSpec& without, const std::vector<std::uint32_t>& whole,
             const std::vector<seccomp_data>& probes) {
  const Filter filter(without);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (filter(probes[i]) != whole[i]) {
      return true;
    }
  }
  return false;
}

template <class Vector>
Vector Without(const Vector& whole, std::size_t left_out) {
  Vector rest;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i != left_out) {
      rest.push_back(whole[i]);
    }
  }
  return rest;
}

// Each with one rule, one condition or one permitted value less.
std::vector<FilterSpec> Reduced(const FilterSpec& spec) {
  std::vector<FilterSpec> all;
  for (std::size_t rule = 0; rule < spec.rules.size(); ++rule) {
    all.push_back(spec);
    all.back().rules = Without(spec.rules, rule);
    const auto& tests = spec.rules[rule].tests;
    for (std::size_t test = 0; test < tests.size(); ++test) {
      all.push_back(spec);
      all.back().rules[rule].tests = Without(tests, test);
      for (std::size_t value = 0; value < tests[test].values.size(); ++value) {
        all.push_back(spec);
        all.back().rules[rule].tests[test].values = Without(tests[test].values, value);
      }
    }
  }
  return all;
}

TEST(Bar, R12NoRuleIsRedundant) {
  const std::vector<seccomp_data> probes = AllProbes();
  for (const FilterSpec& spec : AllSpecs()) {
    const Filter filter(spec);
    std::vector<std::uint32_t> whole;
    for (const seccomp_data& probe : probes) {
      whole.push_back(filter(probe));
    }
    const std::vector<FilterSpec> reduced = Reduced(spec);
    ASSERT_GT(reduced.size(), spec.rules.size());
    for (std::size_t i = 0; i < reduced.size(); ++i) {
      EXPECT_TRUE(Decides(reduced[i], whole, probes)) << "reduction " << i;
    }
  }
}

}  // namespace
}  // namespace bulkhead::worker
