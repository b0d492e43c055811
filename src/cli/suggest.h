// "Did you mean ...?" for mistyped commands and options. Pure.
#pragma once

#include <span>
#include <string_view>

namespace bulkhead::cli {

// The candidate nearest to `typed` by edit distance (a swap of neighbours counts one), empty if
// none is near enough to be what was meant.
std::string_view Nearest(std::string_view typed, std::span<const std::string_view> candidates);

}  // namespace bulkhead::cli
