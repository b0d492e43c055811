// Which system calls a locked-down worker may make: plain data, read by seccomp_filter.cc and by
// its test.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bulkhead::worker {

enum class Verdict : std::uint8_t {
  kAllow,
  kNotImplemented,  // ENOSYS: what a program expects from an older kernel, so it falls back or
                    // reports an error
  kKill,  // SIGSYS to the whole process: only code that has been taken over makes this call
};

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
  std::vector<std::uint32_t> values;
};

// `verdict` if all tests hold, else `otherwise`.
struct SyscallRule {
  int number = 0;
  Verdict verdict = Verdict::kAllow;
  std::vector<ArgumentTest> tests;
  Verdict otherwise = Verdict::kKill;
};

// From lock-down on. A number that stands in no table gets kNotImplemented.
std::vector<SyscallRule> BaseRules();
// As well, if the guest may read directories, resp. write some: calls that take paths, where
// Landlock bounds what they reach. What Landlock does not watch (times, modes, owners, attributes)
// is done by descriptor, or not at all.
std::vector<SyscallRule> DirectoryRules();
std::vector<SyscallRule> WritableDirectoryRules();
// On top, once the guest's code is compiled; a number not named here stays as the tables above have
// it.
std::vector<SyscallRule> GuestPhaseRules();

}  // namespace bulkhead::worker
