// The cgroups of one worker: the one by which its whole tree is killed where there is no pid
// namespace, and those that limit it. Where one can do both it is the same.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/cgroup_pool.h"
#include "process/worker_process.h"

namespace bulkhead::process {

// Of one launcher, shared with the processes it made.
struct CgroupPools {
  CgroupPool tree;
  CgroupPool memory{V1MemoryMethods()};
  CgroupPool tasks{V1PidsMethods()};
};

class WorkerCgroups {
 public:
  WorkerCgroups() = default;  // none

  // Limited as `limits` say, not joined yet. With `namespaces` the tree is killed without a cgroup,
  // so that only those that limit are taken. An error if this machine gives us one and it cannot
  // be had now.
  static Result<WorkerCgroups> Take(std::shared_ptr<CgroupPools> pools, const TreeLimits& limits,
                                    bool namespaces);

  // Null if there is none; a version 2 one can be joined at birth.
  const CgroupLeaf* tree() const { return tree_.get(); }

  // What a worker joins by writing, beside the tree: at most two.
  std::vector<BorrowedFd> LimitMemberships() const;

  // A worker could join, or failed to join, the tree: see CgroupPool. After true it has none.
  void MarkTreeProven();
  bool GiveUpTreeUnlessProven();

  // As reports name them: how the tree is killed, and "cgroup-memory", "cgroup-pids".
  std::vector<std::string> mechanisms() const;

  // Of limits that were asked for at any cost and are not there; empty if all are.
  const std::string& why_not() const { return why_not_; }

  // SIGKILL to the whole tree, where a cgroup holds it. Waiting makes do with one that limits.
  Status Kill(pid_t dying);
  Result<bool> KillAndWait(Deadline deadline);

  Status LimitMemoryGrowth(std::uint64_t bytes);
  // See CgroupLimiter::Account.
  std::optional<CgroupMemory> Account() const;

  // They have been waited empty, or were never joined.
  void GiveBack();

 private:
  Status TakeV1(const TreeLimits& limits);

  std::shared_ptr<CgroupPools> pools_;
  std::unique_ptr<CgroupLeaf> tree_;
  bool kills_ = false;  // the tree is killed by way of tree_
  std::unique_ptr<CgroupLeaf> memory_;
  std::unique_ptr<CgroupLeaf> tasks_;
  TreeLimits limits_;
  std::string why_not_;
};

// Both limits of a worker's memory. That of the cgroup lies above what RLIMIT_DATA allows: a worker
// that allocates too much shall learn it, and be able to say so, rather than be killed.
Status LimitWorkerGrowth(pid_t pid, const MemoryGrowth& growth, WorkerCgroups& cgroups);

}  // namespace bulkhead::process
