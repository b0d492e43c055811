// A spawned worker and everything it may have forked, from outside. This is the supervisor's seam
// to the kernel: the real one is made by a Launcher, tests make fakes.
//
// One owner; not thread-safe but for pidfd() and identity(). Life: running -> exited (observed,
// still a zombie so that its ids cannot be reissued) -> reaped. Nobody else may reap it.
#pragma once

#include <bulkhead/deadline.h>
#include <bulkhead/outcome.h>
#include <bulkhead/result.h>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/proc_stat.h"
#include "base/unique_fd.h"

namespace bulkhead::process {

struct ExitStatus {
  enum class How : std::uint8_t {
    kExited,     // code is the exit code
    kSignalled,  // code is the signal
    kUnknown,    // somebody else reaped it (SIGCHLD ignored by the host, a foreign wait) and the
                 // kernel keeps no record
  };

  How how = How::kUnknown;
  int code = 0;

  bool clean() const { return how == How::kExited && code == 0; }

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// Zeros if unknown.
struct ResourceUse {
  std::chrono::microseconds cpu{0};           // known once reaped
  std::uint64_t rss_bytes_peak = 0;           // at least this much; see SampleMemory
  std::optional<CgroupMemory> cgroup_memory;  // once contained, of workers that a cgroup limits
};

// What a worker may use beyond what it uses now.
struct MemoryGrowth {
  std::uint64_t data_bytes = 0;  // as RLIMIT_DATA counts
  // Beyond that a cgroup counts the kernel's own memory, memory files and memory file systems.
  std::uint64_t uncounted_bytes = 0;
};

// What holds a worker from outside, as obtained.
struct OuterWalls {
  std::vector<std::string> mechanisms;  // "pid-namespace", "process-group", ...: for reports
  bool own_mounts = false;              // it may leave itself an empty root
  bool own_user = false;                // its privileges are those of a user namespace of its own
  // Started by root: it may become another user, and can be limited and killed all the same.
  bool may_change_user = false;
  std::string no_namespaces_because;  // what making them failed with, where they were wanted
  std::string no_cgroup_because;      // the same of limits by cgroup
};

// How long the destructor of a process that is not contained yet may take.
inline constexpr std::chrono::seconds kDestructionDrain{2};

class WorkerProcess {
 public:
  WorkerProcess() = default;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  // Not contained yet: kills the tree and waits at most kDestructionDrain for the reap. Supervisors
  // hand a process that could not be reaped to the Keeper instead of destroying it on a caller's
  // thread.
  virtual ~WorkerProcess() = default;

  // Polls readable once the worker has exited.
  virtual BorrowedFd pidfd() const = 0;
  virtual ProcessIdentity identity() const = 0;

  // The exit if there was one; never reaps, never blocks, never signals. kIo if the kernel cannot
  // be asked.
  virtual Result<std::optional<ExitStatus>> Observe() = 0;

  // SIGKILL to the worker and its whole tree (process group, and container where there is one).
  // Idempotent, safe in every state: a reaped pid is never signalled. An error names the mechanism
  // that failed.
  virtual Status KillTree() = 0;

  // KillTree, then waits until the worker is reaped and nothing of its tree is left, at most until
  // `deadline`. nullopt: time is up; call again later. After success the process counts as
  // contained and every further call returns the same status.
  virtual Result<std::optional<ExitStatus>> KillAndReap(Deadline deadline) = 0;

  // Lowers RLIMIT_DATA to what the worker uses now plus the growth (the worker is not trusted to do
  // it itself), and sets the memory limit of its cgroup, if it has one, accordingly. A worker that
  // has exited needs no limit: success.
  virtual Status LimitGrowth(const MemoryGrowth& growth) = 0;

  // Notes the peak memory of a live worker for resource_use(). KillTree does it too; before an
  // expected exit it has to be asked for, because a dead process tells only whether it ever used
  // more than this one.
  virtual void SampleMemory() {}

  virtual ResourceUse resource_use() const = 0;

  virtual OuterWalls walls() const { return {}; }
};

}  // namespace bulkhead::process
