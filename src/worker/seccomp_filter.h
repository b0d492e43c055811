// The system call table as a program for the kernel, and its installation.
// Installed filters bind every thread of the process, for ever. Stateless; call from any thread.
#pragma once

#include <bulkhead/result.h>

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "worker/syscall_table.h"

namespace bulkhead::worker {

struct FilterSpec {
  std::vector<SyscallRule> rules;  // the first rule for a number counts
  Verdict unlisted = Verdict::kNotImplemented;
  pid_t own_process = 0;  // what ArgumentTest::Kind::kOwnProcess stands for
};

// Calls of a foreign architecture or of the x32 kind are killed before any rule is looked at.
std::vector<sock_filter> BuildFilter(const FilterSpec& spec);

// kLaunch with reason "seccomp" and the errno. The process must have no_new_privs.
Status InstallFilter(const std::vector<sock_filter>& program);

enum class DirectoryUse : std::uint8_t { kNone, kReadOnly, kWritable };

// The two filters of a worker's life.
FilterSpec LockdownFilter(DirectoryUse directories);
FilterSpec GuestPhaseFilter();

}  // namespace bulkhead::worker
