// Limits that only the sketch profile has: fuel by the slice, and the byte queues ("blobs") through
// which its guests and the host exchange data. Value type.
#pragma once

#include <bulkhead/result.h>

#include <chrono>
#include <cstdint>

namespace bulkhead {

struct SketchLimits {
  // Fuel of all threads together; what of it the first gets, and each further one when it starts.
  // RunLimits::fuel, if set, takes the place of all three and is shared out evenly.
  std::uint64_t fuel_total = 1'700'000;
  std::uint64_t fuel_root_slice = 100'000;   // > 0
  std::uint64_t fuel_child_slice = 100'000;  // > 0, and root + child <= total

  std::uint64_t blob_chunk_bytes = 64ULL << 10;  // > 0; moved by one operation at most
  std::uint64_t blob_bytes = 1ULL << 20;         // >= chunk; retained by one blob
  std::uint64_t sketch_bytes = 4ULL << 20;       // >= blob; retained by all
  // Retained by blobs, waiting writes and results together: >= sketch + 2 chunks.
  std::uint64_t transfer_bytes = 3 * (4ULL << 20) + (64ULL << 10);
  std::uint32_t blobs_max = 128;  // at once; 0: none
  std::uint32_t pending_reads_max = 128;
  std::uint32_t pending_writes_max = 128;
  std::chrono::microseconds progress_timeout = std::chrono::seconds(5);  // > 0

  // kInvalidArgument with the rule that is broken.
  Status Validate() const;
};

}  // namespace bulkhead
