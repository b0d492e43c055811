#include "admission/byte_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/strings.h"

namespace bulkhead::admission {
namespace {

constexpr unsigned kGroupBits = 7;  // payload of one LEB128 byte
constexpr unsigned kGroupMask = 0x7F;
constexpr unsigned kMoreFollow = 0x80;

bool IsUtf8(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  return std::all_of(text.begin(), text.end(), is_ascii) || ToValidUtf8(text) == text;
}

}  // namespace

tl::unexpected<Error> InvalidBinary(std::size_t offset, std::string_view expected,
                                    std::string_view found) {
  return Refused("invalid-binary",
                 fmt::format("at byte {}: expected {}, found {}", offset, expected, found));
}

tl::unexpected<Error> Refused(std::string_view code, std::string detail) {
  return Fail(ErrorCode::kModuleRefused, std::move(detail), 0, std::string(code));
}

ByteReader ByteReader::At(std::span<const std::uint8_t> module, std::size_t offset) {
  return ByteReader(module, std::min(offset, module.size()), module.size(), "the module");
}

tl::unexpected<Error> ByteReader::Unexpected(std::string_view expected) const {
  const int next = Peek();
  return InvalidBinary(
      position_, expected,
      next < 0 ? fmt::format("the end of {}", where_) : fmt::format("byte {:#04x}", next));
}

Result<std::uint8_t> ByteReader::Byte(std::string_view what) {
  if (position_ == end_) {
    return Unexpected(what);
  }
  return module_[position_++];
}

Result<std::uint64_t> ByteReader::Unsigned(unsigned bits, std::string_view what) {
  const std::size_t start = position_;
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += kGroupBits) {
    const std::uint8_t byte = BH_TRY(Byte(what));
    const std::uint64_t group = byte & kGroupMask;
    const unsigned room = bits - shift;
    if (room < kGroupBits && (group >> room) != 0) {
      return InvalidBinary(start, what, fmt::format("a number above {} bits", bits));
    }
    value |= group << shift;
    if ((byte & kMoreFollow) == 0) {
      return value;
    }
    if (room <= kGroupBits) {
      return InvalidBinary(start, what, fmt::format("a LEB128 too long for {} bits", bits));
    }
  }
}

Result<std::uint32_t> ByteReader::U32(std::string_view what) {
  return static_cast<std::uint32_t>(BH_TRY(Unsigned(32, what)));
}

Result<std::uint64_t> ByteReader::U64(std::string_view what) {
  return Unsigned(64, what);
}

Result<std::int64_t> ByteReader::Signed(unsigned bits, std::string_view what) {
  const std::size_t start = position_;
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += kGroupBits) {
    const std::uint8_t byte = BH_TRY(Byte(what));
    const unsigned group = byte & kGroupMask;
    const unsigned room = bits - shift;
    if (room < kGroupBits) {
      // The bits beyond the width must repeat the sign.
      const unsigned beyond = group >> (room - 1);
      if (beyond != 0 && beyond != (kGroupMask >> (room - 1))) {
        return InvalidBinary(start, what, fmt::format("a number above {} bits", bits));
      }
    }
    value |= std::uint64_t{group} << shift;
    if ((byte & kMoreFollow) == 0) {
      const unsigned width = shift + kGroupBits;
      if (width < 64 && (group & 0x40U) != 0) {
        value |= ~std::uint64_t{0} << width;
      }
      return static_cast<std::int64_t>(value);
    }
    if (room <= kGroupBits) {
      return InvalidBinary(start, what, fmt::format("a LEB128 too long for {} bits", bits));
    }
  }
}

Result<std::string_view> ByteReader::Name(std::string_view what) {
  const std::size_t start = position_;
  const std::uint32_t length = BH_TRY(U32(what));
  if (length > kNameBytesMax) {
    return Refused("name-too-long",
                   fmt::format("at byte {}: {} of {} bytes, at most {} are accepted", start, what,
                               length, kNameBytesMax));
  }
  const std::size_t begin = position_;
  BH_TRY(Skip(length, what));
  // char and uint8_t view the same bytes.
  const std::string_view name(reinterpret_cast<const char*>(module_.data()) + begin, length);
  if (!IsUtf8(name)) {
    return InvalidBinary(start, what, "bytes that are not UTF-8");
  }
  return name;
}

Result<std::uint32_t> ByteReader::Count(const CountBound& bound) {
  const std::size_t start = position_;
  const std::uint32_t count = BH_TRY(U32(bound.what));
  if (std::uint64_t{count} * bound.entry_bytes_min > remaining()) {
    return InvalidBinary(start, fmt::format("{} {}", count, bound.what),
                         fmt::format("{} bytes before the end of {}", remaining(), where_));
  }
  if (count > bound.max) {
    return Refused(bound.code, fmt::format("at byte {}: {} {}, at most {} are accepted", start,
                                           count, bound.what, bound.max));
  }
  return count;
}

Result<std::uint32_t> ByteReader::Index(std::size_t count, std::string_view what) {
  const std::size_t start = position_;
  const std::uint32_t index = BH_TRY(U32(what));
  if (index >= count) {
    return InvalidBinary(start, fmt::format("{} below {}", what, count), std::to_string(index));
  }
  return index;
}

Status ByteReader::Skip(std::uint64_t bytes, std::string_view what) {
  if (bytes > remaining()) {
    return InvalidBinary(position_, fmt::format("{} of {} bytes", what, bytes),
                         fmt::format("{} bytes before the end of {}", remaining(), where_));
  }
  position_ += static_cast<std::size_t>(bytes);
  return {};
}

Result<ByteReader> ByteReader::Take(std::uint64_t bytes, std::string_view where) {
  const std::size_t begin = position_;
  BH_TRY(Skip(bytes, where));
  return ByteReader(module_, begin, position_, where);
}

Status ByteReader::End() const {
  if (remaining() != 0) {
    return Unexpected(fmt::format("the end of {}", where_));
  }
  return {};
}

}  // namespace bulkhead::admission
