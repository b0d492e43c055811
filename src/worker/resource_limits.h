// The resource limits a worker gives itself. Limits only go down: a value above the present hard
// limit means that one. Address space is never limited: an engine reserves gigabytes of it that
// cost nothing.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace bulkhead::worker {

struct ResourceLimits {
  std::uint64_t data_bytes = 0;   // private writable memory; 0: unlimited
  std::uint64_t cpu_seconds = 0;  // SIGXCPU at the limit, SIGKILL a second later; 0: unlimited
  std::uint64_t file_bytes_max = 0;
  std::uint64_t descriptors_max = 0;
};

// Core dumps are switched off as well. kLaunch with reason "rlimits" and the errno.
Status ApplyResourceLimits(const ResourceLimits& limits);

// Reads this process's memory use also after /proc can no longer be opened. Move-only, one thread.
class MemoryMeter {
 public:
  // Before the lock-down. kLaunch with reason "rlimits" if /proc is not there.
  static Result<MemoryMeter> Open();

  // Lowers the limit on private writable memory to what is in use now plus `bytes`.
  Status LimitDataGrowth(std::uint64_t bytes) const;

 private:
  explicit MemoryMeter(UniqueFd statm) : statm_(std::move(statm)) {}

  Result<std::uint64_t> DataBytes() const;

  UniqueFd statm_;
};

}  // namespace bulkhead::worker
