// The one seam for time: real code uses MonotonicClock, tests a fake. Wall-clock time is never used
// for deadlines.
#pragma once

#include <bulkhead/deadline.h>

namespace bulkhead {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  virtual MonotonicTime Now() const = 0;
};

class MonotonicClock final : public Clock {
 public:
  MonotonicTime Now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace bulkhead
