#include "base/fixed_vector.h"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using Three = FixedVector<int, 3>;

TEST(FixedVectorTest, HoldsWhatWasPutIn) {
  Three numbers{1};
  numbers.push_back(2);
  EXPECT_EQ(numbers, (Three{1, 2}));
  EXPECT_FALSE(numbers == (Three{1, 2, 0}));
  EXPECT_EQ(numbers.back(), 2);
  EXPECT_EQ(numbers.end() - numbers.begin(), 2);
  static_assert(Three{}.empty() && Three{4, 5}.size() == 2);
}

}  // namespace
}  // namespace bulkhead
