// Strict number parsing for names and /proc files. Stateless; any thread.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace bulkhead::staging {

// The number that all of `text` spells in `base`; nothing if it is anything else or out of range.
template <class Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  Number number{};
  const char* first = text.data();
  const char* last = first + text.size();
  const auto [stop, error] = std::from_chars(first, last, number, base);
  if (error != std::errc() || stop != last) {
    return std::nullopt;
  }
  return number;
}

}  // namespace bulkhead::staging
