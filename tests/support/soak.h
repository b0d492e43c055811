// How hard to try: tests that repeat something do it briefly in `make test` and long in `make
// soak`, which sets BULKHEAD_SOAK. Header-only.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

namespace bulkhead::test {

inline int Rounds(int in_test, int in_soak) {
  return std::getenv("BULKHEAD_SOAK") == nullptr ? in_test : in_soak;
}

// BULKHEAD_SEED, or a new one. Said on stderr, so that whatever it led to can be had again.
inline std::uint64_t AnnouncedSeed() {
  const char* given = std::getenv("BULKHEAD_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device{}();
  std::cerr << "BULKHEAD_SEED=" << seed << "\n";
  return seed;
}

}  // namespace bulkhead::test
