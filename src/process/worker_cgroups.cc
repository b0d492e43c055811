#include "process/worker_cgroups.h"

#include <algorithm>
#include <utility>

#include "base/proc_stat.h"
#include "process/child_wait.h"

namespace bulkhead::process {
namespace {

// One leaf of a hierarchy of version 1 for one limit; nullptr where there is none, `why` says why.
Result<std::unique_ptr<CgroupLeaf>> TakeLimiting(CgroupPool& pool, const TreeLimits& limits,
                                                 std::string_view controller, std::string& why) {
  std::unique_ptr<CgroupLeaf> leaf = BH_TRY(pool.Take());
  if (leaf == nullptr) {
    const std::string tried = pool.why();
    why = "no cgroup with the controller " + std::string(controller) +
          " can be made here: " + (tried.empty() ? "none is mounted" : tried);
    return leaf;
  }
  BH_TRY(leaf->limiter().Begin(limits));
  return leaf;
}

}  // namespace

Result<WorkerCgroups> WorkerCgroups::Take(std::shared_ptr<CgroupPools> pools,
                                          const TreeLimits& limits, bool namespaces) {
  WorkerCgroups cgroups;
  cgroups.pools_ = std::move(pools);
  cgroups.limits_ = limits;
  CgroupPool& trees = cgroups.pools_->tree;
  const bool wanted = limits.memory_bytes != 0 || limits.tasks != 0;
  if (!namespaces || (wanted && BH_TRY(trees.LimitsAtBirth()))) {
    cgroups.tree_ = BH_TRY(trees.Take());
    cgroups.kills_ = !namespaces;
  }
  if (cgroups.tree_ != nullptr && cgroups.tree_->limiter().controllers().any()) {
    if (Status begun = cgroups.tree_->limiter().Begin(limits); !begun) {
      if (!namespaces) {
        return Fail(std::move(begun).error());
      }
      cgroups.why_not_ = begun.error().message;  // unlimited, as on a machine without
      cgroups.tree_.reset();
    }
  }
  BH_TRY(cgroups.TakeV1(limits));
  return cgroups;
}

Status WorkerCgroups::TakeV1(const TreeLimits& limits) {
  const CgroupControllers have =
      tree_ != nullptr ? tree_->limiter().controllers() : CgroupControllers();
  if (limits.memory_at_any_cost && !have.memory) {
    memory_ = BH_TRY(TakeLimiting(pools_->memory, limits, "memory", why_not_));
  }
  if (limits.tasks_at_any_cost && !have.tasks) {
    tasks_ = BH_TRY(TakeLimiting(pools_->tasks, limits, "pids", why_not_));
  }
  return {};
}

std::vector<BorrowedFd> WorkerCgroups::LimitMemberships() const {
  std::vector<BorrowedFd> memberships;
  for (const auto* leaf : {&memory_, &tasks_}) {
    if (*leaf != nullptr) {
      memberships.push_back((*leaf)->membership());
    }
  }
  return memberships;
}

void WorkerCgroups::MarkTreeProven() {
  pools_->tree.MarkProven();
}

bool WorkerCgroups::GiveUpTreeUnlessProven() {
  if (!pools_->tree.GiveUpUnlessProven()) {
    return false;
  }
  tree_.reset();
  return true;
}

std::vector<std::string> WorkerCgroups::mechanisms() const {
  std::vector<std::string> names;
  if (tree_ != nullptr && kills_) {
    names.emplace_back(tree_->method().name);
  }
  const auto limits = [](const std::unique_ptr<CgroupLeaf>& leaf) {
    return leaf != nullptr ? leaf->limiter().controllers() : CgroupControllers();
  };
  if (limits_.memory_bytes != 0 && (limits(tree_).memory || memory_ != nullptr)) {
    names.emplace_back("cgroup-memory");
  }
  if (limits_.tasks != 0 && (limits(tree_).tasks || tasks_ != nullptr)) {
    names.emplace_back("cgroup-pids");
  }
  return names;
}

Status WorkerCgroups::Kill(pid_t dying) {
  return tree_ != nullptr ? tree_->Kill(dying) : Status();
}

Result<bool> WorkerCgroups::KillAndWait(Deadline deadline) {
  // Those that limit are empty by then, but where nothing else holds the tree.
  for (const auto* leaf : {&tree_, &memory_, &tasks_}) {
    if (*leaf != nullptr && !BH_TRY((*leaf)->KillAndWait(deadline))) {
      return false;
    }
  }
  return true;
}

Status WorkerCgroups::LimitMemoryGrowth(std::uint64_t bytes) {
  for (const auto* leaf : {&tree_, &memory_}) {
    if (*leaf != nullptr) {
      BH_TRY((*leaf)->limiter().LimitMemoryGrowth(bytes));
    }
  }
  return {};
}

std::optional<CgroupMemory> WorkerCgroups::Account() const {
  for (const auto* leaf : {&tree_, &memory_}) {
    if (*leaf != nullptr) {
      if (std::optional<CgroupMemory> account = (*leaf)->limiter().Account()) {
        return account;
      }
    }
  }
  return std::nullopt;
}

void WorkerCgroups::GiveBack() {
  const auto give = [](CgroupPool& pool, std::unique_ptr<CgroupLeaf>& leaf) {
    if (leaf != nullptr) {
      pool.GiveBack(std::exchange(leaf, nullptr));
    }
  };
  if (pools_ != nullptr) {
    give(pools_->tree, tree_);
    give(pools_->memory, memory_);
    give(pools_->tasks, tasks_);
  }
}

Status LimitWorkerGrowth(pid_t pid, const MemoryGrowth& growth, WorkerCgroups& cgroups) {
  const MemoryUse use = BH_TRY(ReadMemoryUse(pid));
  const std::uint64_t untouched =
      use.data_bytes - std::min(use.data_bytes, use.anonymous_rss_bytes);
  const Status limited =
      cgroups.LimitMemoryGrowth(untouched + growth.data_bytes + growth.uncounted_bytes);
  const Status lowered = LowerDataLimit(pid, growth.data_bytes);
  return limited ? lowered : limited;
}

}  // namespace bulkhead::process
