#include "cli/repeat.h"

#include <gtest/gtest.h>

#include <vector>

namespace bulkhead::cli {
namespace {

using std::chrono::microseconds;

TEST(Repeat, PercentilesAreOfTheNearestRank) {
  std::vector<microseconds> times;
  EXPECT_EQ(Percentile(times, 50), microseconds(0));
  for (int i = 1; i <= 10; ++i) {
    times.emplace_back(i);
  }
  EXPECT_EQ(Percentile(times, 50), microseconds(5));
  EXPECT_EQ(Percentile(times, 51), microseconds(6));
  EXPECT_EQ(Percentile(times, 90), microseconds(9));
  EXPECT_EQ(Percentile(times, 99), microseconds(10));
  EXPECT_EQ(Percentile(times, 100), microseconds(10));
  EXPECT_EQ(Percentile({microseconds(7)}, 0), microseconds(7));
}

TEST(Repeat, TheSummarySaysWhatBecameOfAllRuns) {
  RepeatPlan plan;
  plan.runs = 5;
  plan.jobs = 2;
  RepeatResult result;
  result.codes = {{"trapped", 1}, {"worker-completed", 2}};
  result.times = {microseconds(1000), microseconds(2000), microseconds(4500)};
  result.elapsed = std::chrono::seconds(3);
  result.warm = 2;
  result.unstarted = 2;
  result.first_problem = "un\x1breach\nable";
  EXPECT_EQ(
      RenderRepeat(result, plan),
      "bulkhead: 3 runs in 3.0 s, 2 at a time: 1 trapped, 2 worker-completed\n"
      "bulkhead: 2 runs were not started\n"
      "bulkhead: each took 2.00 ms (median; 90 %: 4.50, 99 %: 4.50, longest: 4.50), 1 runs/s, "
      "2 on spare workers\n"
      "bulkhead: the first that failed: un\\x1breach able\n");
}

TEST(Repeat, NothingStartedIsSaidToo) {
  EXPECT_EQ(RenderRepeat({}, {}), "bulkhead: 0 runs in 0 ms, 1 at a time: none started\n");
}

}  // namespace
}  // namespace bulkhead::cli
