#include "cli/suggest.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace bulkhead::cli {
namespace {

constexpr std::array<std::string_view, 5> kWords{"run", "inspect", "--deadline", "--dir",
                                                 "--dir-rw"};

TEST(Suggest, FindsWhatWasMeant) {
  EXPECT_EQ(Nearest("rnu", kWords), "run");
  EXPECT_EQ(Nearest("inspct", kWords), "inspect");
  EXPECT_EQ(Nearest("--deadlin", kWords), "--deadline");
  EXPECT_EQ(Nearest("--daedline", kWords), "--deadline");
  EXPECT_EQ(Nearest("--dir-rq", kWords), "--dir-rw");
  EXPECT_EQ(Nearest("--di", kWords), "--dir");
}

TEST(Suggest, LeavesOtherWordsAlone) {
  EXPECT_EQ(Nearest("frobnicate", kWords), "");
  EXPECT_EQ(Nearest("", kWords), "");
  EXPECT_EQ(Nearest("x", kWords), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'r'), kWords), "");
}

}  // namespace
}  // namespace bulkhead::cli
