#include "codecache/key.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "codecache/testing.h"

namespace bulkhead::codecache {
namespace {

TEST(KeyTest, ChangesWithEachPartAndWithTheirBorders) {
  const std::string_view module = "0123";
  std::set<std::string> keys;
  const auto add = [&keys](const KeyParts& parts) {
    return keys.insert(KeyOf(parts).Text()).second;
  };
  EXPECT_TRUE(add({module, "engine", "settings", "processor"}));
  EXPECT_TRUE(add({"0124", "engine", "settings", "processor"}));
  EXPECT_TRUE(add({module, "engine2", "settings", "processor"}));
  EXPECT_TRUE(add({module, "engine", "2settings", "processor"}));
  EXPECT_TRUE(add({module, "engine", "settings", "processor2"}));
  EXPECT_TRUE(add({module, "engine", "settingsprocessor", ""}));
  EXPECT_TRUE(add({"", "", "", ""}));
  EXPECT_FALSE(add({module, "engine", "settings", "processor"}));
}

TEST(KeyTest, TextIsAFileNameAndNothingElseIs) {
  const std::string text = KeyFor("m").Text();
  EXPECT_EQ(text.size(), 64U);
  EXPECT_TRUE(IsKeyText(text));
  for (const std::string& other : {text.substr(1), text + "0", "X" + text.substr(1),
                                   "A" + text.substr(1), std::string("lock"), std::string()}) {
    EXPECT_FALSE(IsKeyText(other)) << other;
  }
}

TEST(KeyTest, ProcessorSaysTheSameEveryTime) {
  const std::string features = ProcessorFeatures();
  EXPECT_EQ(features, ProcessorFeatures());
  EXPECT_GT(features.size(), 60U);
  EXPECT_NE(features.find_first_not_of("x86-4 0"), std::string::npos);  // not all zeros
}

}  // namespace
}  // namespace bulkhead::codecache
