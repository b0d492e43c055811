#include "base/tail_buffer.h"

#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"

namespace bulkhead {
namespace {

TEST(TailBuffer, KeepsEverythingUpToItsSize) {
  TailBuffer buffer(8);
  EXPECT_EQ(buffer.Tail(), "");
  EXPECT_EQ(buffer.Text(), "");
  buffer.Append("1234");
  buffer.Append("5678");
  EXPECT_EQ(buffer.Tail(), "12345678");
  EXPECT_EQ(buffer.Text(), "12345678");
  EXPECT_EQ(buffer.total_bytes(), 8U);
  EXPECT_FALSE(buffer.cut());
}

// Whatever the pieces, the result is that of one big append.
TEST(TailBuffer, TailDoesNotDependOnHowTheBytesArrived) {
  constexpr std::size_t kBytesMax = 7;
  std::string all;
  for (int i = 0; i < 100; ++i) {
    all += static_cast<char>('a' + i % 26);
  }
  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    TailBuffer buffer(kBytesMax);
    for (std::size_t at = 0; at < all.size(); at += piece) {
      buffer.Append(std::string_view(all).substr(at, piece));
      EXPECT_LE(buffer.Tail().size(), kBytesMax);
    }
    EXPECT_EQ(buffer.Tail(), all.substr(all.size() - kBytesMax)) << "pieces of " << piece;
    EXPECT_EQ(buffer.total_bytes(), all.size());
    EXPECT_TRUE(buffer.cut());
  }
}

TEST(TailBuffer, TextSaysHowMuchWasCut) {
  TailBuffer buffer(4);
  buffer.Append("123456");
  EXPECT_EQ(buffer.Text(), "[... 2 bytes cut] 3456");
}

// The first kept byte may be in the middle of a character: for every alignment the text stays valid
// and the count of cut bytes and the kept ones add up.
TEST(TailBuffer, TextNeverStartsInsideACharacter) {
  const std::string character = "\xF0\x9F\x98\x80";
  const std::string all = character + character + character;
  for (std::size_t bytes_max = 1; bytes_max < all.size(); ++bytes_max) {
    TailBuffer buffer(bytes_max);
    buffer.Append(all);
    const std::string text = buffer.Text();
    EXPECT_EQ(ToValidUtf8(text), text);
    EXPECT_EQ(text.find("\\x"), std::string::npos) << text;
    const std::size_t kept = bytes_max / character.size() * character.size();
    EXPECT_EQ(text.find("[... " + std::to_string(all.size() - kept) + " bytes cut] "), 0U) << text;
  }
}

TEST(TailBuffer, TextIsPrintable) {
  TailBuffer buffer(64);
  buffer.Append("a\x1B[31mb\xFF");
  EXPECT_EQ(buffer.Text(), "a\\x1b[31mb\\xff");
}

TEST(TailBuffer, HoldsNothingWhenAskedTo) {
  TailBuffer buffer(0);
  buffer.Append("abc");
  EXPECT_EQ(buffer.Tail(), "");
  EXPECT_EQ(buffer.total_bytes(), 3U);
  EXPECT_TRUE(buffer.cut());
}

}  // namespace
}  // namespace bulkhead
