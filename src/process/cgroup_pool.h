// Hands out leaf cgroups and takes them back for the next worker, so that a run costs no mkdir;
// removes them when it is destroyed. What dead owners left beside its own is killed and removed at
// the first use.
//
// Any thread. Shared by a launcher and the processes it made, which may outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "process/cgroup.h"

namespace bulkhead::process {

// A leaf of some pool, by its name.
bool IsLeafOfBulkhead(const std::string& directory);

class CgroupPool {
 public:
  // Of leaves that one of `methods` works on, the first that does; they are found by its kind.
  explicit CgroupPool(std::span<const CgroupMethod> methods = CgroupMethods())
      : methods_(methods) {}

  CgroupPool(const CgroupPool&) = delete;
  CgroupPool& operator=(const CgroupPool&) = delete;
  ~CgroupPool() = default;

  // nullptr if this machine gives us no cgroup: the tree is then killed by process group alone. An
  // error if it does and a leaf cannot be made now.
  Result<std::unique_ptr<CgroupLeaf>> Take();
  // `leaf` has been waited empty, or was never joined.
  void GiveBack(std::unique_ptr<CgroupLeaf> leaf);

  // A worker joined one: from now on failing to join is an error, not a missing feature.
  void MarkProven();
  // A worker could not join. True: that was the first attempt, so this machine does not let us and
  // no leaf is handed out any more. False: it worked before, so the failure counts.
  bool GiveUpUnlessProven();

  // CgroupMethod::name, empty if there is none.
  Result<std::string> Mechanism();
  // Its leaves limit and can be joined at birth, which costs nothing: those of version 2. Makes
  // none to find out.
  Result<bool> LimitsAtBirth();
  // Why there is none, as far as something was tried.
  std::string why() const;

 private:
  Status DetectOnce();
  Result<bool> UseLocation(const CgroupLocation& location);
  std::string NextPath();

  const std::span<const CgroupMethod> methods_;
  mutable std::mutex mutex_;  // guards everything below
  bool detected_ = false;
  bool proven_ = false;
  const CgroupMethod* method_ = nullptr;
  std::optional<bool> limits_at_birth_;
  std::string why_;
  std::string leaf_path_prefix_;  // <own cgroup>/bulkhead-<pid>-<random>-
  std::uint64_t next_number_ = 0;
  std::vector<std::unique_ptr<CgroupLeaf>> idle_;
};

}  // namespace bulkhead::process
