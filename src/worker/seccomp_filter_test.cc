#include "worker/seccomp_filter.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

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
bool Holds(const ArgumentTest& test, const seccomp_data& data) {
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
      return low == static_cast<std::uint32_t>(getpid());
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
  const bool all = std::all_of(rule->tests.begin(), rule->tests.end(),
                               [&data](const ArgumentTest& test) { return Holds(test, data); });
  return ValueOf(all ? rule->verdict : rule->otherwise);
}

TEST(SeccompFilter, DoesWhatTheTableSaysForEveryNumber) {
  for (const FilterSpec& spec :
       {LockdownFilter(DirectoryUse::kNone), LockdownFilter(DirectoryUse::kReadOnly),
        LockdownFilter(DirectoryUse::kWritable), GuestPhaseFilter()}) {
    const Filter filter(spec);
    ASSERT_LE(filter.code().size(), std::size_t{BPF_MAXINSNS});
    // Argument words that make each kind of test succeed and fail.
    for (const std::uint64_t word :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{PROT_EXEC},
          std::uint64_t{PROT_WRITE | PROT_EXEC}, ~std::uint64_t{0}, std::uint64_t{0x100000001},
          static_cast<std::uint64_t>(getpid())}) {
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

// What the compiler made is what this process makes of the same tables.
TEST(SeccompFilter, ProgramsAreThoseOfTheTables) {
  const auto expect_same = [](const FilterProgram& program, const FilterSpec& spec) {
    const BpfCode made = Bind(program, {getpid()});
    const BpfCode expected = Filter(spec).code();
    ASSERT_EQ(made.size(), expected.size());
    EXPECT_EQ(std::memcmp(made.data(), expected.data(), made.size() * sizeof(sock_filter)), 0);
  };
  for (const DirectoryUse use :
       {DirectoryUse::kNone, DirectoryUse::kReadOnly, DirectoryUse::kWritable}) {
    expect_same(LockdownProgram(use), LockdownFilter(use));
  }
  expect_same(GuestPhaseProgram(), GuestPhaseFilter());
}

TEST(SeccompFilter, OnlySlotsDependOnTheProcess) {
  const FilterProgram& program = LockdownProgram(DirectoryUse::kWritable);
  const BpfCode one = Bind(program, {1});
  const BpfCode other = Bind(program, {2});
  std::size_t differences = 0;
  for (std::size_t pc = 0; pc < one.size(); ++pc) {
    differences += one[pc].k != other[pc].k ? 1U : 0U;
  }
  EXPECT_EQ(differences, 1U);
  EXPECT_EQ(Evaluate(other, Call(SYS_tgkill, {2})).verdict, kAllow);
  EXPECT_EQ(Evaluate(other, Call(SYS_tgkill, {1})).verdict, kKill);
}

constexpr SyscallRule kAllowed{SYS_read, Verdict::kAllow, {}, Verdict::kKill};
constexpr SyscallRule kForbidden{SYS_read, Verdict::kKill, {}, Verdict::kKill};

// The statements that a build depends on.
TEST(FilterProgram, RepetitionsAreFound) {
  static_assert(NamesNoNumberTwice({}));
  static_assert(!NamesNoNumberTwice({kAllowed, kForbidden}));
  static_assert(NarrowsEachOf({kForbidden}, {kAllowed}));
  static_assert(!NarrowsEachOf({kAllowed}, {kAllowed}));
  static_assert(!NarrowsEachOf({kForbidden}, {kForbidden}));
  static_assert(!NarrowsEachOf({kForbidden}, {}));
}

TEST(FilterProgram, DeadAndUnendingCodeIsFound) {
  constexpr sock_filter kReturn{BPF_RET | BPF_K, 0, 0, kKill};
  constexpr auto program = [](std::initializer_list<sock_filter> code) {
    return FilterProgram{code, {}};
  };
  constexpr auto jump = [](std::uint8_t if_equal, std::uint8_t if_not) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, if_equal, if_not, 0};
  };
  static_assert(IsWholeAndAlive(program({kReturn})));
  static_assert(IsWholeAndAlive(program({jump(1, 0), kReturn, kReturn})));
  static_assert(!IsWholeAndAlive(program({})));
  static_assert(!IsWholeAndAlive(program({kReturn, kReturn})));
  static_assert(!IsWholeAndAlive(program({jump(1, 1), kReturn, kReturn})));
  static_assert(!IsWholeAndAlive(program({jump(0, 2), kReturn, kReturn})));
  static_assert(!IsWholeAndAlive(program({sock_filter{BPF_ALU | BPF_AND | BPF_K, 0, 0, 1}})));
}

TEST(BpfAssembler, JumpsSkipExactlyTheirBlocks) {
  BpfAssembler assembler;
  const auto returning = [&assembler](std::uint32_t value) {
    return [&assembler, value] { assembler.Return(value); };
  };
  constexpr std::uint32_t kSome[] = {2, 3, 4};
  assembler.Load(offsetof(seccomp_data, nr));
  assembler.IfEqual(1, returning(10));
  assembler.IfNoneOf(kSome, returning(20));
  assembler.IfNotEqual(3U, [] {});
  assembler.Return(30);
  const BpfCode& code = assembler.program().code;
  EXPECT_EQ(Evaluate(code, Call(1)).verdict, 10U);
  for (const int number : {2, 3, 4}) {
    EXPECT_EQ(Evaluate(code, Call(number)).verdict, 30U) << number;
  }
  for (const int number : {0, 5}) {
    EXPECT_EQ(Evaluate(code, Call(number)).verdict, 20U) << number;
  }
}

}  // namespace
}  // namespace bulkhead::worker
