#include "base/strings.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace bulkhead {
namespace {

// One character of each length, and the longest ones at the edges of their ranges.
const std::array<std::string, 6> kCharacters = {
    "a", "\xC3\xA9", "\xE2\x82\xAC", "\xED\x9F\xBF", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"};

TEST(Strings, CutAtEveryOffsetKeepsOnlyWholeCharacters) {
  for (const std::string& character : kCharacters) {
    const std::string text = "xy" + character + character + "z";
    for (std::size_t bytes_max = 0; bytes_max <= text.size() + 1; ++bytes_max) {
      const std::string_view cut = CutUtf8(text, bytes_max);
      EXPECT_LE(cut.size(), bytes_max);
      EXPECT_EQ(text.substr(0, cut.size()), cut);
      EXPECT_EQ(ToValidUtf8(cut), cut) << "a character was split at " << bytes_max;
      // No more is given away than the rest of one character.
      EXPECT_GT(cut.size() + character.size(), std::min(bytes_max, text.size()));
    }
  }
}

TEST(Strings, CutOfInvalidTextStaysBounded) {
  const std::string continuation_only(10, '\x80');
  EXPECT_LE(CutUtf8(continuation_only, 5).size(), 5U);
  EXPECT_GE(CutUtf8(continuation_only, 5).size(), 2U);
  EXPECT_EQ(CutUtf8("", 0), "");
}

TEST(Strings, InvalidBytesBecomeReplacementCharacters) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(ToValidUtf8("\xFF"), replacement);
  EXPECT_EQ(ToValidUtf8("a\xC3"), "a" + replacement);             // cut off
  EXPECT_EQ(ToValidUtf8("\xC0\xAF"), replacement + replacement);  // overlong slash
  EXPECT_EQ(ToValidUtf8("\xE0\x80\xAF"), replacement + replacement + replacement);
  EXPECT_EQ(ToValidUtf8("\xED\xA0\x80"), replacement + replacement + replacement);  // surrogate
  EXPECT_EQ(ToValidUtf8("\xF4\x90\x80\x80").size(), 4 * replacement.size());  // above U+10FFFF
  for (const std::string& character : kCharacters) {
    EXPECT_EQ(ToValidUtf8(character), character);
  }
}

TEST(Strings, QuotedShowsWhatCannotBeSeen) {
  EXPECT_EQ(Quoted("plain"), "'plain'");
  EXPECT_EQ(Quoted("it's"), "'it\\'s'");
  EXPECT_EQ(Quoted("a\\b"), "'a\\\\b'");
  EXPECT_EQ(Quoted("a\nb"), "'a\\x0ab'");
  EXPECT_EQ(Quoted(std::string_view("a\0b", 3)), "'a\\x00b'");
  EXPECT_EQ(Quoted("\x1B[31m"), "'\\x1b[31m'");
  EXPECT_EQ(Quoted("\xFF"), "'\\xff'");
  EXPECT_EQ(Quoted("\xC2\x9B"), "'\\xc2\\x9b'");  // the 8-bit form of ESC [
  EXPECT_EQ(Quoted("\xE2\x82\xAC"), "'\xE2\x82\xAC'");
}

TEST(Strings, PrintableKeepsLinesAndTabsOnly) {
  EXPECT_EQ(Printable("a\tb\n"), "a\tb\n");
  EXPECT_EQ(Printable("a\rb"), "a\\x0db");
  EXPECT_EQ(Printable("\x1B]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(Printable("\x7F"), "\\x7f");
  EXPECT_EQ(Printable("\xC2\x85"), "\\xc2\\x85");
  EXPECT_EQ(Printable("it's \\"), "it's \\");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string shown = Printable(std::string(1, static_cast<char>(byte)));
    EXPECT_EQ(ToValidUtf8(shown), shown) << byte;
  }
}

TEST(Strings, Hex) {
  const std::array<std::uint8_t, 3> bytes = {0x00, 0x0F, 0xA5};
  EXPECT_EQ(ToHex(bytes), "000fa5");
  EXPECT_EQ(ToHex({}), "");
}

}  // namespace
}  // namespace bulkhead
