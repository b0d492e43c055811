// Makes programs for the kernel of rules about system calls, and says what is known of a program
// without running it. All of it works at compile time.
#pragma once

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/bpf_assembler.h"
#include "worker/syscall_rule.h"

namespace bulkhead::worker {

struct FilterSpec {
  RuleList rules;
  Verdict unlisted = Verdict::kNotImplemented;
};

namespace filter {

// System call numbers from here on belong to the x32 interface.
inline constexpr std::uint32_t kX32Bit = 0x40000000;

constexpr std::uint32_t ReturnValue(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAllow:
      return SECCOMP_RET_ALLOW;
    case Verdict::kNotImplemented:
      return SECCOMP_RET_ERRNO | ENOSYS;
    case Verdict::kKill:
      return SECCOMP_RET_KILL_PROCESS;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

constexpr std::uint32_t LowWordOffset(std::uint8_t argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8U * argument;
}

// Returns `failed` unless the test holds; falls through if it does.
constexpr void Require(BpfAssembler& program, const ArgumentTest& test, Verdict failed) {
  const auto fail = [&] { program.Return(ReturnValue(failed)); };
  const std::uint32_t low_word = LowWordOffset(test.argument);
  program.Load(low_word);
  switch (test.kind) {
    case ArgumentTest::Kind::kNone:
      return;
    case ArgumentTest::Kind::kOneOf:
      program.IfNoneOf({test.values.data(), test.values.size()}, fail);
      return;
    case ArgumentTest::Kind::kNoBitOf:
      program.And(test.mask);
      program.IfNotEqual(0U, fail);
      return;
    case ArgumentTest::Kind::kNotAllOf:
      program.And(test.mask);
      program.IfEqual(test.mask, fail);
      return;
    case ArgumentTest::Kind::kOwnProcess:
      program.IfNotEqual(Slot::kOwnProcess, fail);
      return;
    case ArgumentTest::Kind::kNull:
      program.IfNotEqual(0U, fail);
      program.Load(low_word + sizeof(std::uint32_t));
      program.IfNotEqual(0U, fail);
      return;
  }
}

// Falls through for other numbers.
constexpr void Decide(BpfAssembler& program, const SyscallRule& rule) {
  program.IfEqual(static_cast<std::uint32_t>(rule.number), [&] {
    for (const ArgumentTest& test : rule.tests) {
      Require(program, test, rule.otherwise);
    }
    program.Return(ReturnValue(rule.verdict));
  });
}

}  // namespace filter

// Calls of a foreign architecture or of the x32 kind are killed before any rule is looked at. Rules
// with conditions come first. Of the others the kernel (from 5.11) knows from the installation on
// which numbers are always allowed, and does not run the program for them: their order is nothing
// that can be measured, while passing 140 of them costs a call with conditions a quarter of its
// filter's time.
constexpr FilterProgram BuildFilter(const FilterSpec& spec) {
  BpfAssembler program;
  const auto kill = [&] { program.Return(SECCOMP_RET_KILL_PROCESS); };
  program.Load(offsetof(seccomp_data, arch));
  program.IfNotEqual(AUDIT_ARCH_X86_64, kill);
  program.Load(offsetof(seccomp_data, nr));
  program.And(filter::kX32Bit);
  program.IfNotEqual(0U, kill);
  program.Load(offsetof(seccomp_data, nr));
  for (const bool with_conditions : {true, false}) {
    for (const SyscallRule& rule : spec.rules) {
      if (rule.tests.empty() != with_conditions) {
        filter::Decide(program, rule);
      }
    }
  }
  program.Return(filter::ReturnValue(spec.unlisted));
  return program.program();
}

constexpr bool NamesNoNumberTwice(const RuleList& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (FindRule(rules, rules[i].number) != i) {
      return false;
    }
  }
  return true;
}

// `later` says something new about each of its numbers: a call that `earlier`, whose unlisted calls
// are not implemented, permits at least sometimes, and in another way.
constexpr bool NarrowsEachOf(const RuleList& later, const RuleList& earlier) {
  for (const SyscallRule& rule : later) {
    const std::size_t before = FindRule(earlier, rule.number);
    if (before == earlier.size() || earlier[before].verdict != Verdict::kAllow ||
        earlier[before] == rule) {
      return false;
    }
  }
  return true;
}

// Every instruction can be reached, every jump ends within the program, and so does every way
// through it: what the kernel demands, and that nothing in it is dead.
constexpr bool IsWholeAndAlive(const FilterProgram& program) {
  const BpfCode& code = program.code;
  FixedVector<bool, kInstructionsMax> reached;
  for (std::size_t pc = 0; pc < code.size(); ++pc) {
    reached.push_back(pc == 0);
  }
  for (std::size_t pc = 0; pc < code.size(); ++pc) {
    if (!reached[pc]) {
      return false;
    }
    const sock_filter& instruction = code[pc];
    if (BPF_CLASS(instruction.code) == BPF_RET) {
      continue;
    }
    const bool jumps = BPF_CLASS(instruction.code) == BPF_JMP;
    const std::size_t next[] = {pc + 1 + (jumps ? instruction.jt : 0U),
                                pc + 1 + (jumps ? instruction.jf : 0U)};
    for (const std::size_t target : next) {
      if (target >= code.size()) {
        return false;
      }
      reached[target] = true;
    }
  }
  return !code.empty();
}

}  // namespace bulkhead::worker
