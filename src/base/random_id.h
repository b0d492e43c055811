// Random bytes from the kernel; never predictable, never from a clock.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace bulkhead {

// Fills `bytes` from getrandom(2); aborts if the kernel has no entropy source (then nothing is
// safe).
void FillRandom(std::span<std::uint8_t> bytes);

// `byte_count` random bytes as lower-case hex.
std::string RandomHex(std::size_t byte_count);

}  // namespace bulkhead
