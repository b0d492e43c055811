#include <bulkhead/deadline.h>

#include <gtest/gtest.h>

#include <chrono>

namespace bulkhead {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

const MonotonicTime kNow{seconds(1000)};

TEST(Deadline, PassesExactlyAtItsTime) {
  const Deadline deadline = Deadline::After(kNow, seconds(5));
  EXPECT_EQ(deadline.when(), kNow + seconds(5));
  EXPECT_FALSE(deadline.PassedAt(kNow + seconds(5) - nanoseconds(1)));
  EXPECT_TRUE(deadline.PassedAt(kNow + seconds(5)));
  EXPECT_EQ(deadline.Remaining(kNow), seconds(5));
}

TEST(Deadline, RemainingIsNeverNegative) {
  EXPECT_EQ(Deadline::At(kNow).Remaining(kNow), nanoseconds(0));
  EXPECT_EQ(Deadline::At(kNow).Remaining(kNow + seconds(1)), nanoseconds(0));
}

TEST(Deadline, HugeBudgetsSaturateInsteadOfOverflowing) {
  EXPECT_TRUE(Deadline::After(kNow, nanoseconds::max()).never());
  const nanoseconds room = MonotonicTime::max() - kNow;
  EXPECT_TRUE(Deadline::After(kNow, room).never());
  EXPECT_FALSE(Deadline::After(kNow, room - nanoseconds(1)).never());
  EXPECT_EQ(Deadline::After(kNow, room - nanoseconds(1)).Remaining(kNow), room - nanoseconds(1));
}

TEST(Deadline, NeverNeverComes) {
  EXPECT_FALSE(Deadline::Never().PassedAt(kNow));
  EXPECT_EQ(Deadline::Never().Remaining(kNow), nanoseconds::max());
  EXPECT_LT(Deadline::At(kNow), Deadline::Never());
  EXPECT_EQ(Deadline::Never(), Deadline::Never());
}

}  // namespace
}  // namespace bulkhead
