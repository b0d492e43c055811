#include "admission/byte_reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "admission/test_modules.h"

namespace bulkhead::admission {
namespace {

Result<std::uint32_t> U32(const Bytes& bytes) {
  ByteReader reader(bytes, "the test");
  return reader.U32("a number");
}

Result<std::uint64_t> U64(const Bytes& bytes) {
  ByteReader reader(bytes, "the test");
  return reader.U64("a number");
}

Result<std::int64_t> Signed(unsigned bits, const Bytes& bytes) {
  ByteReader reader(bytes, "the test");
  return reader.Signed(bits, "a number");
}

TEST(ByteReader, ReadsUnsignedNumbersOfEachLength) {
  for (const std::uint64_t value :
       {0ULL, 1ULL, 127ULL, 128ULL, 16383ULL, 16384ULL, 0xFFFF'FFFFULL}) {
    EXPECT_EQ(U32(Leb(value)).value(), value);
    EXPECT_EQ(U64(Leb(value)).value(), value);
  }
  const std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(U64(Leb(largest)).value(), largest);
}

TEST(ByteReader, AcceptsPaddedNumbersUpToTheWidth) {
  EXPECT_EQ(U32({0x80, 0x80, 0x80, 0x80, 0x00}).value(), 0U);
  EXPECT_EQ(U32({0x83, 0x80, 0x80, 0x80, 0x00}).value(), 3U);
  EXPECT_EQ(Signed(32, {0xFF, 0xFF, 0xFF, 0xFF, 0x7F}).value(), -1);
}

TEST(ByteReader, RefusesNumbersBeyondTheWidth) {
  EXPECT_FALSE(U32({0x80, 0x80, 0x80, 0x80, 0x10}));        // bit 32
  EXPECT_FALSE(U32({0x80, 0x80, 0x80, 0x80, 0x80, 0x00}));  // six bytes
  EXPECT_FALSE(U64({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02}));
  EXPECT_FALSE(U64({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}));
}

TEST(ByteReader, SignedNumbersKeepTheirSign) {
  EXPECT_EQ(Signed(32, {0x7F}).value(), -1);
  EXPECT_EQ(Signed(32, {0x40}).value(), -64);
  EXPECT_EQ(Signed(32, {0x3F}).value(), 63);
  EXPECT_EQ(Signed(32, {0xC0, 0x00}).value(), 64);
  EXPECT_EQ(Signed(32, {0x80, 0x80, 0x80, 0x80, 0x78}).value(),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(Signed(32, {0xFF, 0xFF, 0xFF, 0xFF, 0x07}).value(),
            std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(Signed(33, {0xFF, 0xFF, 0xFF, 0xFF, 0x0F}).value(), 0xFFFF'FFFFLL);
  EXPECT_EQ(Signed(64, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7F}).value(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Signed(64, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x00}).value(),
            std::numeric_limits<std::int64_t>::max());
}

TEST(ByteReader, RefusesSignedNumbersWhoseStrayBitsAreNoSign) {
  EXPECT_FALSE(Signed(32, {0x80, 0x80, 0x80, 0x80, 0x08}));
  EXPECT_FALSE(Signed(32, {0xFF, 0xFF, 0xFF, 0xFF, 0x4F}));
  EXPECT_FALSE(Signed(33, {0x80, 0x80, 0x80, 0x80, 0x20}));
  EXPECT_FALSE(Signed(64, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}));
  EXPECT_FALSE(Signed(32, {0x80, 0x80, 0x80, 0x80, 0x80, 0x00}));
}

TEST(ByteReader, EveryProperPrefixOfANumberFails) {
  const Bytes longest = Leb(std::numeric_limits<std::uint64_t>::max());
  for (std::size_t size = 0; size < longest.size(); ++size) {
    const Bytes prefix(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(size));
    const Result<std::uint64_t> read = U64(prefix);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().reason, "invalid-binary");
    EXPECT_EQ(read.error().message,
              "at byte " + std::to_string(size) + ": expected a number, found the end of the test");
  }
}

TEST(ByteReader, CountsNeedTheBytesForTheirEntries) {
  const CountBound bound = {"things", "too-many-things", 3, 2};
  const auto count = [&](const Bytes& bytes) {
    ByteReader reader(bytes, "the test");
    return reader.Count(bound);
  };
  EXPECT_EQ(count({2, 0, 0, 0, 0}).value(), 2U);
  EXPECT_EQ(count({2, 0, 0, 0}).error().reason, "invalid-binary");
  EXPECT_EQ(count({0xFF, 0xFF, 0xFF, 0xFF, 0x0F}).error().reason, "invalid-binary");
  EXPECT_EQ(count({4, 0, 0, 0, 0, 0, 0, 0, 0}).error().reason, "too-many-things");
}

TEST(ByteReader, NamesAreBoundedUtf8) {
  const auto name = [](const Bytes& bytes) {
    ByteReader reader(bytes, "the test");
    return reader.Name("a name");
  };
  const Bytes snowman = Name("sn\xE2\x98\x83w");
  EXPECT_EQ(name(snowman).value(), "sn\xE2\x98\x83w");
  EXPECT_EQ(name({3, 'a', 'b'}).error().reason, "invalid-binary");
  EXPECT_EQ(name({2, 0xC0, 0x80}).error().reason, "invalid-binary");
  EXPECT_EQ(name({1, 0xFF}).error().reason, "invalid-binary");
  EXPECT_EQ(name(Name(std::string(kNameBytesMax + 1, 'x'))).error().reason, "name-too-long");
  const Bytes longest = Name(std::string(kNameBytesMax, 'x'));
  EXPECT_TRUE(name(longest));
}

TEST(ByteReader, AStretchTakenCannotBeLeft) {
  const Bytes bytes = {1, 2, 3};
  ByteReader reader(bytes, "the whole");
  EXPECT_FALSE(reader.Take(4, "the part"));
  ByteReader part = reader.Take(2, "the part").value();
  EXPECT_EQ(reader.remaining(), 1U);
  EXPECT_TRUE(part.Byte("a byte"));
  EXPECT_FALSE(part.End());
  EXPECT_TRUE(part.Byte("a byte"));
  EXPECT_TRUE(part.End());
  EXPECT_EQ(part.Byte("a byte").error().message,
            "at byte 2: expected a byte, found the end of the part");
  EXPECT_FALSE(part.Skip(std::numeric_limits<std::uint64_t>::max(), "bytes"));
}

}  // namespace
}  // namespace bulkhead::admission
