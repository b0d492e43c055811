#include "wasi/guest_clock.h"

#include <array>

namespace bulkhead::wasi {

Answer<clockid_t> HostClock(std::uint32_t id) {
  constexpr std::array kClocks = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
                                  CLOCK_THREAD_CPUTIME_ID};
  if (id >= kClocks.size()) {
    return Refuse(Errno::kInval);
  }
  return kClocks[id];
}

Answer<std::uint64_t> NowNanoseconds(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) {
    return RefuseHost();
  }
  return ToNanoseconds(now);
}

std::uint64_t ToNanoseconds(const timespec& time) {
  constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
  // A time before 1970 has no representation in the guest; it sees 1970.
  return time.tv_sec < 0 ? 0
                         : static_cast<std::uint64_t>(time.tv_sec) * kNanosecondsPerSecond +
                               static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace bulkhead::wasi
