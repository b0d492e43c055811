// What one run's operation hub may hold for its guest. A value; the parent chooses it.
#pragma once

#include <bulkhead/result.h>

#include <chrono>
#include <cstdint>

namespace bulkhead::sketch {

struct HubLimits {
  std::uint32_t chunk_bytes = 64U * 1024;          // of one transfer
  std::uint64_t blob_bytes = 1024ULL * 1024;       // allocated in one blob
  std::uint64_t blobs_bytes = 4ULL * 1024 * 1024;  // allocated in all blobs together
  std::uint32_t blobs = 128;                       // alive at once; 0 admits none
  std::uint32_t pending_reads = 128;               // 0 admits no read
  std::uint32_t pending_writes = 128;              // 0 admits no write
  // Blobs, waiting writes, uncollected reads and bytes under way to a file, together. Three times
  // the blobs leaves each of the others as much; the chunk is what a reader needs to go on.
  std::uint64_t retained_bytes = 3 * blobs_bytes + chunk_bytes;
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(5);  // of a transfer that waits
};

// kInvalidArgument unless the limits are in proportion to each other.
Status ValidateLimits(const HubLimits& limits);

}  // namespace bulkhead::sketch
