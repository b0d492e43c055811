#include "sketch/limits.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/clock.h"
#include "sketch/hub.h"

namespace bulkhead::sketch {
namespace {

TEST(HubLimits, DefaultsAreValid) {
  const HubLimits limits;
  EXPECT_TRUE(ValidateLimits(limits));
  EXPECT_EQ(limits.retained_bytes, 3u * 4 * 1024 * 1024 + 64 * 1024);
}

TEST(HubLimits, CountsMayBeZero) {
  EXPECT_TRUE(ValidateLimits({.blobs = 0, .pending_reads = 0, .pending_writes = 0}));
}

TEST(HubLimits, SizesAreInProportion) {
  EXPECT_FALSE(ValidateLimits({.chunk_bytes = 0}));
  EXPECT_FALSE(ValidateLimits({.chunk_bytes = 101, .blob_bytes = 100}));
  EXPECT_FALSE(ValidateLimits({.blob_bytes = 2 * 1024 * 1024, .blobs_bytes = 1024 * 1024}));
  HubLimits tight = {.chunk_bytes = 10, .blob_bytes = 20, .blobs_bytes = 30, .retained_bytes = 50};
  EXPECT_TRUE(ValidateLimits(tight));
  tight.retained_bytes = 49;
  EXPECT_FALSE(ValidateLimits(tight));
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(ValidateLimits({.blobs_bytes = kHuge, .retained_bytes = kHuge}));
}

TEST(HubLimits, IdleTimeoutIsPositive) {
  EXPECT_FALSE(ValidateLimits({.idle_timeout = std::chrono::nanoseconds(0)}));
  EXPECT_TRUE(ValidateLimits({.idle_timeout = std::chrono::nanoseconds(1)}));
}

TEST(HubLimits, HubRefusesBadOnes) {
  const MonotonicClock clock;
  const auto hub = Hub::Create({.limits = {.chunk_bytes = 0}}, clock);
  ASSERT_FALSE(hub);
  EXPECT_EQ(hub.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace bulkhead::sketch
