// Runs filter programs as the kernel would, for the tests of the system call filters.
#pragma once

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "worker/seccomp_filter.h"

namespace bulkhead::worker {

inline constexpr int kSyscallNumbersTried = 1024;  // twice as many as any kernel has
inline constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
inline constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
inline constexpr std::uint32_t kNotImplemented = SECCOMP_RET_ERRNO | ENOSYS;

struct Evaluation {
  std::uint32_t verdict = kKill;
  std::vector<std::size_t> executed;  // instructions, in order
};

// What the kernel would do with these few instructions.
inline Evaluation Evaluate(const BpfCode& program, const seccomp_data& data) {
  Evaluation evaluation;
  std::uint32_t accumulator = 0;
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    evaluation.executed.push_back(pc);
    const sock_filter& instruction = program[pc];
    switch (instruction.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        EXPECT_LE(instruction.k + sizeof accumulator, sizeof data);
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + instruction.k,
                    sizeof accumulator);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= instruction.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        pc += accumulator == instruction.k ? instruction.jt : instruction.jf;
        break;
      case BPF_RET | BPF_K:
        evaluation.verdict = instruction.k;
        return evaluation;
      default:
        ADD_FAILURE() << "unknown instruction " << instruction.code;
        return evaluation;
    }
  }
  ADD_FAILURE() << "the program ran past its end";
  return evaluation;
}

inline seccomp_data Call(int number, std::initializer_list<std::uint64_t> arguments = {}) {
  seccomp_data data{};
  data.nr = number;
  data.arch = AUDIT_ARCH_X86_64;
  std::copy(arguments.begin(), arguments.end(), data.args);
  return data;
}

class Filter {
 public:
  explicit Filter(const FilterProgram& program) : code_(Bind(program, {getpid()})) {}

  explicit Filter(const FilterSpec& spec) : Filter(BuildFilter(spec)) {}

  std::uint32_t operator()(const seccomp_data& data) const { return Evaluate(code_, data).verdict; }

  const BpfCode& code() const { return code_; }

 private:
  BpfCode code_;
};

}  // namespace bulkhead::worker
