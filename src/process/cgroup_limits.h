// What the controllers of a leaf cgroup hold a worker's tree to, and what they tell of it. Both
// versions; everything is done in one directory, so that a directory of plain files does for a
// test.
#pragma once

#include <bulkhead/outcome.h>
#include <bulkhead/result.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "process/cgroup_location.h"

namespace bulkhead::process {

// Which limits a cgroup can set.
struct CgroupControllers {
  bool memory = false;
  bool tasks = false;  // processes and threads: the controller "pids"

  bool any() const { return memory || tasks; }

  friend bool operator==(const CgroupControllers&, const CgroupControllers&) = default;
};

// Of a worker and everything it starts, init included; 0: none.
struct TreeLimits {
  std::uint64_t memory_bytes = 0;
  std::uint64_t tasks = 0;
  // Also where joining costs milliseconds (version 1), which is not done unasked.
  bool memory_at_any_cost = false;
  bool tasks_at_any_cost = false;
};

// Version 2: lets cgroups below `directory` have the controllers that it has itself. What of them
// they have then; the kernel refuses where processes are in `directory`, unless it is the root.
CgroupControllers OfferControllers(BorrowedFd directory);

// The limits of one cgroup, over all workers that use it one after the other. `directory` outlives
// it.
class CgroupLimiter {
 public:
  CgroupLimiter(BorrowedFd directory, CgroupKind kind);

  CgroupControllers controllers() const { return controllers_; }

  // For a new worker, before it joins: limits those of `limits` that can be, lifts the others.
  // Nothing of what an earlier worker used, reached or left counts for this one.
  Status Begin(const TreeLimits& limits);

  // From now on as much as is in use and `bytes` more. Nothing where memory is not limited.
  Status LimitMemoryGrowth(std::uint64_t bytes);

  // What became of the worker's memory, once it is reaped; nullopt where that is not limited, or
  // not told.
  std::optional<CgroupMemory> Account() const;

  // What the worker left (pages of files that outlive it) is little, and nothing of it was killed
  // for memory: the next worker can have this cgroup.
  bool clean() const;

 private:
  struct Counts {
    std::uint64_t oom_kills = 0;
    std::uint64_t limit_hits = 0;
  };

  Result<Counts> ReadCounts() const;
  Result<std::uint64_t> ReadNumber(const char* file) const;
  // As much as is in use and `bytes` more.
  Status SetMemoryLimit(std::uint64_t bytes);
  Status WriteMemoryLimit(std::uint64_t bytes) const;
  bool Has(const char* file) const;

  BorrowedFd directory_;
  bool v2_;
  CgroupControllers controllers_;
  std::uint64_t memory_limit_ = 0;  // 0: none
  Counts before_;
  std::uint64_t peak_before_ = 0;
};

}  // namespace bulkhead::process
