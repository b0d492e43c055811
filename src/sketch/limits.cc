#include "sketch/limits.h"

namespace bulkhead::sketch {

Status ValidateLimits(const HubLimits& limits) {
  if (limits.chunk_bytes == 0 || limits.chunk_bytes > limits.blob_bytes ||
      limits.blob_bytes > limits.blobs_bytes) {
    return Fail(ErrorCode::kInvalidArgument,
                "blob limits: 0 < chunk <= one blob <= all blobs does not hold");
  }
  // Without adding, which could overflow.
  if (limits.retained_bytes < limits.blobs_bytes ||
      limits.retained_bytes - limits.blobs_bytes < 2 * std::uint64_t{limits.chunk_bytes}) {
    return Fail(ErrorCode::kInvalidArgument,
                "blob limits: the transfer total must hold all blobs and two chunks");
  }
  if (limits.idle_timeout <= std::chrono::nanoseconds::zero()) {
    return Fail(ErrorCode::kInvalidArgument, "blob limits: the idle timeout must be positive");
  }
  return {};
}

}  // namespace bulkhead::sketch
