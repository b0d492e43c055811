#include "worker/seccomp_filter.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "worker/bpf_assembler.h"
#include "worker/filter_support_test.h"

namespace bulkhead::worker {
namespace {

std::uint32_t ValueOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAllow:
      return kAllow;
    case Verdict::kNotImplemented:
      return kNotImplemented;
    case Verdict::kKill:
      return kKill;
  }
  return kKill;
}

// An independent reading of the table.
bool Holds(const ArgumentTest& test, const seccomp_data& data, pid_t own_process) {
  const auto low = static_cast<std::uint32_t>(data.args[test.argument]);
  switch (test.kind) {
    case ArgumentTest::Kind::kNone:
      return true;
    case ArgumentTest::Kind::kOneOf:
      return std::find(test.values.begin(), test.values.end(), low) != test.values.end();
    case ArgumentTest::Kind::kNoBitOf:
      return (low & test.mask) == 0;
    case ArgumentTest::Kind::kNotAllOf:
      return (low & test.mask) != test.mask;
    case ArgumentTest::Kind::kOwnProcess:
      return low == static_cast<std::uint32_t>(own_process);
    case ArgumentTest::Kind::kNull:
      return data.args[test.argument] == 0;
  }
  return false;
}

std::uint32_t Expected(const FilterSpec& spec, const seccomp_data& data) {
  const auto rule = std::find_if(spec.rules.begin(), spec.rules.end(),
                                 [&data](const SyscallRule& r) { return r.number == data.nr; });
  if (rule == spec.rules.end()) {
    return ValueOf(spec.unlisted);
  }
  const bool all =
      std::all_of(rule->tests.begin(), rule->tests.end(),
                  [&](const ArgumentTest& test) { return Holds(test, data, spec.own_process); });
  return ValueOf(all ? rule->verdict : rule->otherwise);
}

TEST(SeccompFilter, DoesWhatTheTableSaysForEveryNumber) {
  for (const FilterSpec& spec :
       {LockdownFilter(DirectoryUse::kNone), LockdownFilter(DirectoryUse::kReadOnly),
        LockdownFilter(DirectoryUse::kWritable), GuestPhaseFilter()}) {
    const Filter filter(spec);
    ASSERT_LE(filter.program().size(), std::size_t{BPF_MAXINSNS});
    // Argument words that make each kind of test succeed and fail.
    for (const std::uint64_t word :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{PROT_EXEC},
          std::uint64_t{PROT_WRITE | PROT_EXEC}, ~std::uint64_t{0}, std::uint64_t{0x100000001},
          static_cast<std::uint64_t>(spec.own_process)}) {
      for (int number = 0; number < kSyscallNumbersTried; ++number) {
        const seccomp_data data = Call(number, {word, word, word, word, word, word});
        ASSERT_EQ(filter(data), Expected(spec, data)) << number << " with " << word;
      }
    }
  }
}

TEST(SeccompFilter, OtherCallingConventionsAreKilled) {
  const Filter filter(LockdownFilter(DirectoryUse::kWritable));
  for (int number = 0; number < kSyscallNumbersTried; ++number) {
    seccomp_data data = Call(number | 0x40000000);
    EXPECT_EQ(filter(data), kKill) << number;
    data = Call(number);
    data.arch = AUDIT_ARCH_I386;
    EXPECT_EQ(filter(data), kKill) << number;
  }
  EXPECT_EQ(filter(Call(-1)), kKill);
}

TEST(SeccompFilter, UnknownCallsAreNotImplemented) {
  const Filter filter(LockdownFilter(DirectoryUse::kNone));
  EXPECT_EQ(filter(Call(SYS_memfd_create)),
            kNotImplemented);  // the engine's handling of memories relies on it
  EXPECT_EQ(filter(Call(SYS_openat)), kNotImplemented);
  EXPECT_EQ(filter(Call(SYS_clone3)), kNotImplemented);
}

TEST(SeccompFilter, OnlyThreadsAreCloned) {
  const Filter filter(LockdownFilter(DirectoryUse::kNone));
  constexpr std::uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                    CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                    CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  EXPECT_EQ(filter(Call(SYS_clone, {kThread})), kAllow);
  EXPECT_EQ(filter(Call(SYS_clone, {kThread | CLONE_NEWUSER})), kKill);
  EXPECT_EQ(filter(Call(SYS_clone, {kThread & ~std::uint64_t{CLONE_THREAD}})), kKill);
  EXPECT_EQ(filter(Call(SYS_clone, {SIGCHLD})), kKill);
}

TEST(SeccompFilter, ExecutableMemoryIsNeverWritable) {
  const Filter lockdown(LockdownFilter(DirectoryUse::kNone));
  EXPECT_EQ(lockdown(Call(SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE})), kAllow);
  EXPECT_EQ(lockdown(Call(SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC})), kKill);
  EXPECT_EQ(lockdown(Call(SYS_mprotect, {0, 4096, PROT_READ | PROT_EXEC})), kAllow);
  EXPECT_EQ(lockdown(Call(SYS_mprotect, {0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC})), kKill);
  EXPECT_EQ(lockdown(Call(SYS_pkey_mprotect)), kKill);
  const Filter guest_phase(GuestPhaseFilter());
  EXPECT_EQ(guest_phase(Call(SYS_mprotect, {0, 4096, PROT_READ | PROT_WRITE})), kAllow);
  EXPECT_EQ(guest_phase(Call(SYS_mprotect, {0, 4096, PROT_READ | PROT_EXEC})), kKill);
}

TEST(SeccompFilter, LimitsAreLoweredOnceAndOnlyTheOwn) {
  const Filter lockdown(LockdownFilter(DirectoryUse::kNone));
  EXPECT_EQ(lockdown(Call(SYS_prlimit64, {0, RLIMIT_DATA})), kAllow);
  EXPECT_EQ(lockdown(Call(SYS_prlimit64, {0, RLIMIT_NOFILE})), kNotImplemented);
  EXPECT_EQ(lockdown(Call(SYS_prlimit64, {1, RLIMIT_DATA})), kNotImplemented);
  const Filter guest_phase(GuestPhaseFilter());
  EXPECT_EQ(guest_phase(Call(SYS_prlimit64, {0, RLIMIT_DATA})), kKill);
  EXPECT_EQ(guest_phase(Call(SYS_seccomp, {SECCOMP_SET_MODE_FILTER})), kKill);
}

TEST(SeccompFilter, PathsAreForGuestsWithDirectories) {
  const Filter without(LockdownFilter(DirectoryUse::kNone));
  const Filter reading(LockdownFilter(DirectoryUse::kReadOnly));
  const Filter writing(LockdownFilter(DirectoryUse::kWritable));
  for (const SyscallRule& rule : DirectoryRules()) {
    EXPECT_EQ(without(Call(rule.number)), kNotImplemented) << rule.number;
    EXPECT_EQ(reading(Call(rule.number)), kAllow) << rule.number;
    EXPECT_EQ(writing(Call(rule.number)), kAllow) << rule.number;
  }
  for (const SyscallRule& rule : WritableDirectoryRules()) {
    EXPECT_EQ(reading(Call(rule.number)), kNotImplemented) << rule.number;
    EXPECT_EQ(writing(Call(rule.number)), kAllow) << rule.number;
  }
}

TEST(BpfAssembler, JumpsSkipExactlyTheirBlocks) {
  BpfAssembler ten;
  ten.Return(10);
  BpfAssembler twenty;
  twenty.Return(20);
  BpfAssembler program;
  program.Load(offsetof(seccomp_data, nr));
  program.IfEqual(1, ten);
  program.IfNoneOf({2, 3, 4}, twenty);
  program.IfNotEqual(3, BpfAssembler());
  program.Return(30);
  EXPECT_EQ(Evaluate(program.code(), Call(1)).verdict, 10U);
  for (const int number : {2, 3, 4}) {
    EXPECT_EQ(Evaluate(program.code(), Call(number)).verdict, 30U) << number;
  }
  for (const int number : {0, 5}) {
    EXPECT_EQ(Evaluate(program.code(), Call(number)).verdict, 20U) << number;
  }
}

}  // namespace
}  // namespace bulkhead::worker
