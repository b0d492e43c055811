// What a rule about a system call can say: plain data that exists at compile time. At most one rule
// stands for a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/fixed_vector.h"

namespace bulkhead::worker {

enum class Verdict : std::uint8_t {
  kAllow,
  kNotImplemented,  // ENOSYS: what a program expects from an older kernel, so it falls back or
                    // reports an error
  kKill,  // SIGSYS to the whole process: only code that has been taken over makes this call
};

inline constexpr std::size_t kValuesMax = 6;
inline constexpr std::size_t kTestsMax = 2;
inline constexpr std::size_t kRulesMax = 192;

// A condition on one argument. But for kNull the kernel reads the arguments concerned as 32-bit
// values or as flags below bit 32, so the low word decides.
struct ArgumentTest {
  enum class Kind : std::uint8_t {
    kNone,        // always true
    kOneOf,       // equals one of `values`
    kNoBitOf,     // shares no bit with `mask`
    kNotAllOf,    // does not have all bits of `mask`
    kOwnProcess,  // is this process's id
    kNull,        // is a null pointer: all 64 bits
  };

  Kind kind = Kind::kNone;
  std::uint8_t argument = 0;
  std::uint32_t mask = 0;
  FixedVector<std::uint32_t, kValuesMax> values;

  constexpr bool operator==(const ArgumentTest& other) const = default;
};

// `verdict` if all tests hold, else `otherwise`.
struct SyscallRule {
  int number = 0;
  Verdict verdict = Verdict::kAllow;
  FixedVector<ArgumentTest, kTestsMax> tests;
  Verdict otherwise = Verdict::kKill;

  constexpr bool operator==(const SyscallRule& other) const = default;
};

using RuleList = FixedVector<SyscallRule, kRulesMax>;

// Conditions and rules as the tables write them.
constexpr ArgumentTest OneOf(std::uint8_t argument, std::initializer_list<std::uint32_t> values) {
  return {ArgumentTest::Kind::kOneOf, argument, 0, values};
}

constexpr ArgumentTest NoBitOf(std::uint8_t argument, std::uint32_t mask) {
  return {ArgumentTest::Kind::kNoBitOf, argument, mask, {}};
}

constexpr ArgumentTest NotAllOf(std::uint8_t argument, std::uint32_t mask) {
  return {ArgumentTest::Kind::kNotAllOf, argument, mask, {}};
}

constexpr ArgumentTest OwnProcess(std::uint8_t argument) {
  return {ArgumentTest::Kind::kOwnProcess, argument, 0, {}};
}

constexpr ArgumentTest Null(std::uint8_t argument) {
  return {ArgumentTest::Kind::kNull, argument, 0, {}};
}

constexpr SyscallRule AllowIf(int number, std::initializer_list<ArgumentTest> tests,
                              Verdict otherwise) {
  return {number, Verdict::kAllow, tests, otherwise};
}

constexpr void Add(RuleList& rules, Verdict verdict, std::initializer_list<int> numbers) {
  for (const int number : numbers) {
    rules.push_back({number, verdict, {}, Verdict::kKill});
  }
}

constexpr void Append(RuleList& rules, const RuleList& more) {
  for (const SyscallRule& rule : more) {
    rules.push_back(rule);
  }
}

// Where the rule for a number stands; the size if there is none.
constexpr std::size_t FindRule(const RuleList& rules, int number) {
  std::size_t i = 0;
  while (i < rules.size() && rules[i].number != number) {
    ++i;
  }
  return i;
}

}  // namespace bulkhead::worker
