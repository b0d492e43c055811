#include "cli/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace bulkhead::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

std::int64_t Nanoseconds(std::string_view text) {
  const auto duration = ParseDuration(text);
  return duration ? duration->count() : -1;
}

std::uint64_t Bytes(std::string_view text) {
  constexpr std::uint64_t kRefused = 0xDEAD;
  return ParseSize(text).value_or(kRefused);
}

TEST(Units, DurationsHaveAUnit) {
  EXPECT_EQ(Nanoseconds("7ns"), 7);
  EXPECT_EQ(Nanoseconds("7us"), 7'000);
  EXPECT_EQ(Nanoseconds("500ms"), 500'000'000);
  EXPECT_EQ(Nanoseconds("1.5s"), 1'500'000'000);
  EXPECT_EQ(Nanoseconds("2m"), 120'000'000'000);
  EXPECT_EQ(Nanoseconds("1h"), 3'600'000'000'000);
  EXPECT_EQ(Nanoseconds("0s"), 0);
  EXPECT_EQ(Nanoseconds("0.3ns"), 0);
  EXPECT_EQ(Nanoseconds("0.0000000000000000001h"), 0);
  EXPECT_EQ(Nanoseconds("0.25h"), 900'000'000'000);
}

TEST(Units, LargestDurationIsTheClocks) {
  EXPECT_EQ(Nanoseconds("9223372036854775807ns"), nanoseconds::max().count());
  for (const std::string_view text : {"9223372036854775808ns", "18446744073709551616ns", "2562048h",
                                      "99999999999999999999999999h"}) {
    const auto refused = ParseDuration(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().message.find("is too large"), std::string::npos) << text;
  }
}

TEST(Units, SizesHaveAUnitInAnyCase) {
  EXPECT_EQ(Bytes("512B"), 512U);
  EXPECT_EQ(Bytes("64KiB"), 65536U);
  EXPECT_EQ(Bytes("64kib"), 65536U);
  EXPECT_EQ(Bytes("1.5GiB"), 1'610'612'736U);
  EXPECT_EQ(Bytes("1TiB"), 1ULL << 40U);
  EXPECT_EQ(Bytes("2tb"), 2'000'000'000'000U);
  EXPECT_EQ(Bytes("10MB"), 10'000'000U);
  EXPECT_EQ(Bytes("2kB"), 2'000U);
  EXPECT_EQ(Bytes("0.1KiB"), 102U);
  EXPECT_EQ(Bytes("18446744073709551615B"), std::numeric_limits<std::uint64_t>::max());
}

TEST(Units, BadQuantitiesNameTheAcceptedForms) {
  const struct {
    std::string_view text;
    std::string_view message;
  } rows[] = {
      {"5", "'5' has no unit; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"", "'' is not a number with a unit; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"GiB", "'GiB' is not a number with a unit; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"-5MiB",
       "'-5MiB' is not a number with a unit; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"5M", "'5M' has an unknown unit 'M'; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"5 MiB",
       "'5 MiB' has an unknown unit ' MiB'; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"1.MiB",
       "'1.MiB' has no digit after the point; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"1.2.3MiB",
       "'1.2.3MiB' has an unknown unit '.3MiB'; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"18446744073709551616B",
       "'18446744073709551616B' is too large; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"17179869184GiB",
       "'17179869184GiB' is too large; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {"5\x1b[2J",
       "'5\\x1b[2J' has an unknown unit '\\x1b[2J'; write a size such as 512B, 64KiB, 256MiB or "
       "2GB"},
  };

  for (const auto& row : rows) {
    const auto size = ParseSize(row.text);
    ASSERT_FALSE(size) << row.text;
    EXPECT_EQ(size.error().message, row.message);
    EXPECT_EQ(size.error().code, ErrorCode::kInvalidArgument);
  }
  for (const std::string_view text :
       {"5", "5S", "5 s", "5M", "5d", "s", "1e3s", "+5s", "5ss", "0x5s"}) {
    const auto duration = ParseDuration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_NE(duration.error().message.find("500ms, 1.5s, 2m or 1h"), std::string::npos) << text;
  }
}

TEST(Units, CountsArePlain) {
  EXPECT_EQ(ParseCount("1000").value_or(0), 1000U);
  EXPECT_EQ(ParseCount("1_000_000").value_or(0), 1'000'000U);
  EXPECT_EQ(ParseCount("1e9").value_or(0), 1'000'000'000U);
  EXPECT_EQ(ParseCount("25E2").value_or(0), 2500U);
  EXPECT_EQ(ParseCount("18446744073709551615").value_or(0),
            std::numeric_limits<std::uint64_t>::max());
  for (const std::string_view text : {"", "-1", "1.5", "1e", "e9", "_1", "1_", "1__0", "1e20",
                                      "2e19", "18446744073709551616", "1000x", "1 000", "0x10"}) {
    EXPECT_FALSE(ParseCount(text)) << text;
  }
}

TEST(Units, QuantitiesReadWell) {
  EXPECT_EQ(FormatDuration(microseconds(900)), "0 ms");
  EXPECT_EQ(FormatDuration(microseconds(12'345)), "12 ms");
  EXPECT_EQ(FormatDuration(microseconds(1'290'000)), "1.2 s");
  EXPECT_EQ(FormatDuration(microseconds(185'000'000)), "3 min 5 s");
  EXPECT_EQ(FormatSize(1), "1 byte");
  EXPECT_EQ(FormatSize(1023), "1023 bytes");
  EXPECT_EQ(FormatSize(1536), "1.5 KiB");
  EXPECT_EQ(FormatSize(42'000), "41 KiB");
  EXPECT_EQ(FormatSize(1ULL << 30U), "1.0 GiB");
  EXPECT_EQ(FormatSize(std::numeric_limits<std::uint64_t>::max()), "16 EiB");
}

}  // namespace
}  // namespace bulkhead::cli
