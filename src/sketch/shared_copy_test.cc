#include "sketch/shared_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace bulkhead::sketch {
namespace {

constexpr std::size_t kAreaBytes = 64;
constexpr std::uint8_t kUntouched = 0xee;

// Every misalignment of either side with every length around a word: exactly those bytes.
TEST(SharedCopy, CopiesExactlyTheRangeAtEveryAlignment) {
  alignas(8) std::array<std::uint8_t, kAreaBytes> source;
  std::iota(source.begin(), source.end(), std::uint8_t{1});
  for (std::size_t from = 0; from < 9; ++from) {
    for (std::size_t to = 0; to < 9; ++to) {
      for (std::size_t bytes = 0; bytes <= 40; ++bytes) {
        alignas(8) std::array<std::uint8_t, kAreaBytes> out;
        alignas(8) std::array<std::uint8_t, kAreaBytes> in;
        out.fill(kUntouched);
        in.fill(kUntouched);
        CopyToShared(out.data() + to, std::span(source).subspan(from, bytes));
        CopyFromShared(std::span(in).subspan(to, bytes), source.data() + from);
        std::array<std::uint8_t, kAreaBytes> expected;
        expected.fill(kUntouched);
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(to));
        ASSERT_EQ(out, expected) << from << ' ' << to << ' ' << bytes;
        ASSERT_EQ(in, expected) << from << ' ' << to << ' ' << bytes;
      }
    }
  }
}

// For ThreadSanitizer: guest threads write what is being copied.
TEST(SharedCopy, BearsConcurrentWriters) {
  alignas(8) std::vector<std::uint8_t> shared(kAreaBytes);
  std::vector<std::uint8_t> copy(kAreaBytes - 3);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    const std::vector<std::uint8_t> ones(kAreaBytes - 1, 1);
    while (!done) {
      CopyToShared(shared.data() + 1, ones);
    }
  });
  for (int i = 0; i < 1000; ++i) {
    CopyFromShared(copy, shared.data() + 2);
    ASSERT_TRUE(std::ranges::all_of(copy, [](std::uint8_t byte) { return byte <= 1; }));
  }
  done = true;
  writer.join();
}

}  // namespace
}  // namespace bulkhead::sketch
