// The clocks a guest may read. The host's own: a guest that can count has a clock anyway.
#pragma once

#include <cstdint>
#include <ctime>

#include "wasi/answer.h"

namespace bulkhead::wasi {

// kInval for a number that is no clock. 0 realtime, 1 monotonic, 2 process CPU time, 3 thread CPU
// time.
Answer<clockid_t> HostClock(std::uint32_t id);
Answer<std::uint64_t> NowNanoseconds(clockid_t clock);
std::uint64_t ToNanoseconds(const timespec& time);

}  // namespace bulkhead::wasi
