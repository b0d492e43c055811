// The two filters of a worker's life, made when this is compiled, and their installation.
// Installed filters bind every thread of the process, for ever. Stateless; call from any thread.
#pragma once

#include <bulkhead/result.h>

#include <sys/types.h>

#include <cstdint>

#include "worker/filter_program.h"
#include "worker/syscall_table.h"

namespace bulkhead::worker {

enum class DirectoryUse : std::uint8_t { kNone, kReadOnly, kWritable };

constexpr FilterSpec LockdownFilter(DirectoryUse directories) {
  FilterSpec spec{BaseRules(), Verdict::kNotImplemented};
  if (directories != DirectoryUse::kNone) {
    Append(spec.rules, DirectoryRules());
  }
  if (directories == DirectoryUse::kWritable) {
    Append(spec.rules, WritableDirectoryRules());
  }
  return spec;
}

constexpr FilterSpec GuestPhaseFilter() {
  return {GuestPhaseRules(), Verdict::kAllow};
}

// What BuildFilter makes of these.
const FilterProgram& LockdownProgram(DirectoryUse directories);
const FilterProgram& GuestPhaseProgram();

// The values of a program's slots.
struct Bindings {
  pid_t own_process = 0;
};

// The program's code with its slots filled. Allocates nothing.
BpfCode Bind(const FilterProgram& program, const Bindings& bindings);

// kLaunch with reason "seccomp" and the errno. The process must have no_new_privs.
Status InstallFilter(const FilterProgram& program, const Bindings& bindings);

}  // namespace bulkhead::worker
