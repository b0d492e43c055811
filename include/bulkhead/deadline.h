// Absolute points on the monotonic clock. Durations are std::chrono, never bare integers.
#pragma once

#include <chrono>

namespace bulkhead {

using MonotonicTime = std::chrono::steady_clock::time_point;

// A Deadline is fixed once and handed down; nothing extends it. Value type, any thread.
class Deadline {
 public:
  // A deadline that never comes.
  static constexpr Deadline Never() { return Deadline(MonotonicTime::max()); }

  static constexpr Deadline At(MonotonicTime when) { return Deadline(when); }

  // now + budget, saturating at Never() instead of overflowing.
  static Deadline After(MonotonicTime now, std::chrono::nanoseconds budget) {
    return budget >= MonotonicTime::max() - now ? Never() : Deadline(now + budget);
  }

  constexpr MonotonicTime when() const { return when_; }

  constexpr bool never() const { return when_ == MonotonicTime::max(); }

  constexpr bool PassedAt(MonotonicTime now) const { return now >= when_; }

  // Time left at `now`, never negative; nanoseconds::max() for Never().
  std::chrono::nanoseconds Remaining(MonotonicTime now) const {
    if (never()) {
      return std::chrono::nanoseconds::max();
    }
    return when_ <= now ? std::chrono::nanoseconds::zero()
                        : std::chrono::duration_cast<std::chrono::nanoseconds>(when_ - now);
  }

  friend constexpr bool operator==(Deadline, Deadline) = default;
  friend constexpr auto operator<=>(Deadline, Deadline) = default;

 private:
  explicit constexpr Deadline(MonotonicTime when) : when_(when) {}

  MonotonicTime when_;
};

}  // namespace bulkhead
