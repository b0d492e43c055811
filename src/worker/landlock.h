// Landlock: after RestrictSelf this thread, and every thread and process it starts, reaches no file
// by name but beneath the given directories, opens no TCP connection, and signals nobody outside.
// Descriptors already open keep working.
#pragma once

#include <bulkhead/result.h>

#include <vector>

#include "base/unique_fd.h"

namespace bulkhead::worker {

struct LandlockRule {
  BorrowedFd directory;
  bool writable = false;
};

// Returns the kernel's Landlock ABI, which says how much was denied. kLaunch with reason "landlock"
// and the errno if the kernel has none (ENOSYS, EOPNOTSUPP) or refuses. Call before other threads
// exist.
Result<int> RestrictSelf(const std::vector<LandlockRule>& rules);

}  // namespace bulkhead::worker
