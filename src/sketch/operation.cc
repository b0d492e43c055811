#include "sketch/operation.h"

#include <algorithm>

#include "sketch/blob.h"

namespace bulkhead::sketch {

std::optional<MonotonicTime> Operation::EndsAt(std::chrono::nanoseconds idle_timeout) const {
  if (!pending()) {
    return std::nullopt;
  }
  if (wakes_at) {
    return wakes_at;
  }
  if (armed_at) {
    return Deadline::After(std::max(*armed_at, blob->last_moved()), idle_timeout).when();
  }
  return std::nullopt;
}

}  // namespace bulkhead::sketch
