#include "sketch/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace bulkhead::sketch {
namespace {

std::span<const std::uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string Hex(const std::array<std::uint8_t, kDigestBytes>& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// FIPS 180-4, examples.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(Hex(Sha256().Finish()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 abc;
  abc.Update(Bytes("abc"));
  EXPECT_EQ(Hex(abc.Finish()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 two_blocks;
  two_blocks.Update(Bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"));
  EXPECT_EQ(Hex(two_blocks.Finish()),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, PiecesDoNotMatter) {
  const std::string million(1'000'000, 'a');
  Sha256 pieces;
  std::string_view left = million;
  for (std::size_t bytes = 1; !left.empty(); bytes = bytes * 3 + 1) {
    pieces.Update(Bytes(left.substr(0, bytes)));
    left.remove_prefix(std::min(bytes, left.size()));
  }
  EXPECT_EQ(Hex(pieces.Finish()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace bulkhead::sketch
