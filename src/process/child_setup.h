// The only code that runs between clone and exec.
//
// The child shares the parent's memory (its thread waits meanwhile), so this code allocates
// nothing, takes no lock, calls nothing but system calls, and is not instrumented by sanitizers.
// Everything it needs is prepared in a ChildPlan; what went wrong comes back through it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace bulkhead::process {

// Where a launch fails. The names travel as Error::reason.
enum class LaunchStage : std::uint8_t {
  kPrepare,      // paths, descriptors, digest
  kCreate,       // clone
  kNamespaces,   // the worker's own ones, and their init
  kContainment,  // session, parent-death signal, cgroup, limits
  kDescriptors,
  kWorkingDirectory,
  kExec,
};

struct ChildPlan {
  struct Move {
    int source;
    int target;
  };

  struct Limit {
    int resource;
    rlimit value;
  };

  // Of what is executed: the worker, or the init that starts it.
  const char* const* arguments = nullptr;
  int program_fd = -1;  // executed instead of the path arguments[0] if valid
  bool is_init = false;
  const char* working_directory = nullptr;
  pid_t parent = 0;  // who the parent must still be, taken before the clone; 0: not to be seen
                     // from the child's pid namespace
  // Texts for /proc/self/uid_map and gid_map; nullptr: no user namespace of its own.
  const char* user_map = nullptr;
  const char* group_map = nullptr;
  bool own_mounts = false;
  // Each a cgroup.procs to join.
  const int* memberships = nullptr;
  std::size_t membership_count = 0;

  Move* moves = nullptr;  // ascending by target, each target once; the child writes to it
  std::size_t move_count = 0;
  const Limit* limits = nullptr;
  std::size_t limit_count = 0;

  // Filled by the child. A child that was killed at birth never starts; one that executes leaves
  // error at 0.
  bool started = false;
  LaunchStage failed_stage = LaunchStage::kCreate;
  std::size_t joined = 0;       // how many of the cgroups
  bool failed_joining = false;  // the next one, in stage kContainment
  int error = 0;
};

// Body for clone: `argument` is a ChildPlan*. Never returns.
int RunChild(void* argument);

}  // namespace bulkhead::process
