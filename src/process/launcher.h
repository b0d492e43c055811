// Spec -> running worker. The only door to clone and exec.
#pragma once

#include <bulkhead/result.h>

#include <sys/resource.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "process/cgroup_limits.h"
#include "process/worker_process.h"

namespace bulkhead::process {

struct SpawnSpec {
  struct Descriptor {
    BorrowedFd source;
    int target = -1;  // the number in the worker; 0, 1 and 2 are /dev/null unless given
  };

  struct Limit {
    int resource = 0;  // RLIMIT_*
    rlim_t value = 0;  // soft and hard, but never more than this process may have
  };

  std::string program;  // absolute; argv is the program path alone, the environment is empty
  std::optional<std::string> program_sha256;  // hex; the very file that was hashed is executed
  std::vector<Descriptor> descriptors;        // everything else is closed
  std::string working_directory = "/";
  std::vector<Limit> limits;
  TreeLimits tree_limits;   // by cgroup, where this machine lets us
  bool namespaces = false;  // of its own, where this machine lets us make them
};

// Where a launch failed; travels as Error::reason.
//   "prepare" (paths, descriptors, digest), "create" (clone), "namespaces", "containment" (session,
//   parent-death signal, limits, cgroup), "descriptors", "working-directory", "exec".

// The seam: tests put scripted processes behind it.
class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  // Any thread. Blocks until the worker's exec succeeded or failed. kLaunch, or kResourceExhausted
  // where a later try may succeed: message names program, stage and errno text; nothing is left
  // behind. The worker dies with the calling *thread* (parent-death signal), so call it from a
  // thread that outlives the worker: the Keeper's.
  virtual Result<std::unique_ptr<WorkerProcess>> Spawn(const SpawnSpec& spec) = 0;

  // What would hold a worker started now, with namespaces wanted or not. Where there are none its
  // tree is reached by "process-group", and by "cgroup-..." where this machine gives us one;
  // without the latter a descendant that starts a session of its own is out of reach. Finds out by
  // trying.
  virtual Result<OuterWalls> Walls(bool /*namespaces*/) { return OuterWalls(); }
};

// The real one. Cost does not depend on the size of the calling process.
std::unique_ptr<Launcher> MakeLauncher();

}  // namespace bulkhead::process
