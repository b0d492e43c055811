// Quantities as people write them: durations and sizes need a unit, counts are plain. Pure
// functions; an Error is kInvalidArgument and one sentence that names the accepted forms.
#pragma once

#include <bulkhead/result.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::cli {

// "500ms", "1.5s", "2m": a decimal number and one of ns us ms s m h, in lower case ("M" would be
// months or mega). Finer than a nanosecond is cut off.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// "64KiB", "1.5GiB", "10MB": a decimal number and one of B KB MB GB (powers of 1000) or KiB MiB GiB
// (powers of 1024), in any case. Parts of a byte are cut off.
Result<std::uint64_t> ParseSize(std::string_view text);

// "1000", "1_000_000", "1e9".
Result<std::uint64_t> ParseCount(std::string_view text);

// "12 ms", "1.2 s", "3 min 5 s".
std::string FormatDuration(std::chrono::microseconds duration);

// "41 KiB", "1.5 GiB", "17 bytes".
std::string FormatSize(std::uint64_t bytes);

}  // namespace bulkhead::cli
