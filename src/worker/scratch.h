// A private, bounded, empty file system that no path leads to and that vanishes with the last
// descriptor on it.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace bulkhead::worker {

// The root directory of a fresh tmpfs of at most `bytes`. Where mounting needs a privilege the
// process lacks, it moves into user and mount name spaces of its own first, so call it before other
// threads exist and before the lock-down. kLaunch with reason "scratch" and the errno.
Result<UniqueFd> MakeScratch(std::uint64_t bytes);

}  // namespace bulkhead::worker
