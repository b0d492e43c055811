// Threads that the system does not give.
#include "wasm/thread_group.h"

#include <gtest/gtest.h>

#include "support/refused_calls.h"

namespace bulkhead::wasm {
namespace {

constexpr std::uint64_t kRootFuel = 100;
constexpr std::uint64_t kChildFuel = 200;

// One thread may live, one may ever start, and there is fuel for one.
ThreadGroup::Settings RoomForOne() {
  return {.limits = {.live_max = 1,
                     .total_max = 1,
                     .root_fuel = kRootFuel,
                     .child_fuel = kChildFuel,
                     .child_fuel_returns = false},
          .fuel = kRootFuel + kChildFuel,
          .stack_bytes = 1U << 20};
}

TEST(ThreadGroup, ARefusalOfTheSystemCountsAsCapacityAndCostsNothing) {
  ThreadStart started;
  ThreadGroup group(
      RoomForOne(), [] { return false; },
      [&started](const ThreadStart& start) -> std::uint64_t {
        started = start;
        return 0;
      });
  if (!test::WithoutNewThreads([&] { EXPECT_FALSE(group.Spawn(7)); })) {
    GTEST_SKIP() << "missing: seccomp";
  }
  EXPECT_EQ(group.rejections().capacity, 1U);
  group.Join();  // nobody lives

  // The place, the total and the fuel are there again.
  const std::optional<std::uint32_t> thread = group.Spawn(8);
  ASSERT_TRUE(thread);
  group.Join();
  EXPECT_EQ(started.thread, *thread);
  EXPECT_EQ(started.argument, 8);
  EXPECT_EQ(started.fuel, kChildFuel);
  EXPECT_EQ(group.fuel_used(), kChildFuel);
  const wire::Terminal::Rejections rejections = group.rejections();
  EXPECT_EQ(rejections.capacity, 1U);
  EXPECT_EQ(rejections.fuel + rejections.closing + rejections.epoch, 0U);
}

}  // namespace
}  // namespace bulkhead::wasm
