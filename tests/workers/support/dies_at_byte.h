// What tests/workers/dies_at_byte.cc writes, for it and its test.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead::test {

inline constexpr std::size_t kDyingStdoutBytes = 64U << 10;
inline constexpr std::string_view kDyingOutput = "whole output";

// Every place in it is told from its neighbours.
inline std::string DyingStdout() {
  std::string text;
  while (text.size() < kDyingStdoutBytes) {
    text += std::to_string(text.size()) + " ";
  }
  text.resize(kDyingStdoutBytes);
  return text;
}

}  // namespace bulkhead::test
