#include "worker/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "worker/bpf_assembler.h"
#include "worker/mechanism_error.h"

namespace bulkhead::worker {
namespace {

// System call numbers from here on belong to the x32 interface.
constexpr std::uint32_t kX32Bit = 0x40000000;

std::uint32_t ReturnValue(Verdict verdict) {
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

BpfAssembler Returning(Verdict verdict) {
  BpfAssembler block;
  block.Return(ReturnValue(verdict));
  return block;
}

std::uint32_t LowWordOffset(std::uint8_t argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8U * argument;
}

// Returns `failed` unless the test holds; falls through if it does.
void Require(const ArgumentTest& test, pid_t own_process, Verdict failed, BpfAssembler& block) {
  const BpfAssembler fail = Returning(failed);
  block.Load(LowWordOffset(test.argument));
  switch (test.kind) {
    case ArgumentTest::Kind::kNone:
      return;
    case ArgumentTest::Kind::kOneOf:
      block.IfNoneOf(test.values, fail);
      return;
    case ArgumentTest::Kind::kNoBitOf:
      block.And(test.mask);
      block.IfNotEqual(0, fail);
      return;
    case ArgumentTest::Kind::kNotAllOf:
      block.And(test.mask);
      block.IfEqual(test.mask, fail);
      return;
    case ArgumentTest::Kind::kOwnProcess:
      block.IfNotEqual(static_cast<std::uint32_t>(own_process), fail);
      return;
    case ArgumentTest::Kind::kNull:
      block.IfNotEqual(0, fail);
      block.Load(LowWordOffset(test.argument) + sizeof(std::uint32_t));
      block.IfNotEqual(0, fail);
      return;
  }
}

void Append(std::vector<SyscallRule>& rules, const std::vector<SyscallRule>& more) {
  rules.insert(rules.end(), more.begin(), more.end());
}

}  // namespace

std::vector<sock_filter> BuildFilter(const FilterSpec& spec) {
  BpfAssembler program;
  program.Load(offsetof(seccomp_data, arch));
  program.IfNotEqual(AUDIT_ARCH_X86_64, Returning(Verdict::kKill));
  program.Load(offsetof(seccomp_data, nr));
  program.And(kX32Bit);
  program.IfNotEqual(0, Returning(Verdict::kKill));
  program.Load(offsetof(seccomp_data, nr));
  for (const SyscallRule& rule : spec.rules) {
    BpfAssembler block;
    for (const ArgumentTest& test : rule.tests) {
      Require(test, spec.own_process, rule.otherwise, block);
    }
    block.Return(ReturnValue(rule.verdict));
    program.IfEqual(static_cast<std::uint32_t>(rule.number), block);
  }
  program.Return(ReturnValue(spec.unlisted));
  return program.code();
}

Status InstallFilter(const std::vector<sock_filter>& program) {
  std::vector<sock_filter> code = program;
  const sock_fprog filter{static_cast<unsigned short>(code.size()), code.data()};
  const long result =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
  if (result != 0) {
    // A positive result names a thread that could not be bound.
    const int sys_errno = result > 0 ? EAGAIN : errno;
    return MechanismFailed("seccomp", "seccomp", "", sys_errno);
  }
  return {};
}

FilterSpec LockdownFilter(DirectoryUse directories) {
  std::vector<SyscallRule> rules = BaseRules();
  if (directories != DirectoryUse::kNone) {
    Append(rules, DirectoryRules());
  }
  if (directories == DirectoryUse::kWritable) {
    Append(rules, WritableDirectoryRules());
  }
  return {std::move(rules), Verdict::kNotImplemented, getpid()};
}

FilterSpec GuestPhaseFilter() {
  return {GuestPhaseRules(), Verdict::kAllow, getpid()};
}

}  // namespace bulkhead::worker
