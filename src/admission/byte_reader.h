// Reads one stretch of a module's bytes, strictly: no read leaves the stretch, every LEB128 number
// has at most the length its width allows and no stray bits, and no count is believed before the
// bytes for it are known to be there. A view; the bytes must outlive it. Not for sharing between
// threads. A failed read is Error kModuleRefused whose reason is the refusal code and whose message
// names the offset in the module, what was expected and what was found.
#pragma once

#include <bulkhead/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bulkhead::admission {

// Longest name the engine accepts; one above is refused without being looked at.
inline constexpr std::uint32_t kNameBytesMax = 100'000;

// How many of something a module may have.
struct CountBound {
  std::string_view what;  // plural, for messages
  std::string_view code;  // refusal code when there are more
  std::uint32_t max = 0;
  std::uint32_t entry_bytes_min = 1;  // no entry is encoded in less
};

// "at byte 12: expected X, found Y" with code invalid-binary.
tl::unexpected<Error> InvalidBinary(std::size_t offset, std::string_view expected,
                                    std::string_view found);
// A refusal with a code of its own.
tl::unexpected<Error> Refused(std::string_view code, std::string detail);

class ByteReader {
 public:
  // All of `module`; `where` names the stretch in messages ("the import
  // section").
  ByteReader(std::span<const std::uint8_t> module, std::string_view where)
      : ByteReader(module, 0, module.size(), where) {}

  std::size_t offset() const { return position_; }

  std::size_t remaining() const { return end_ - position_; }

  std::string_view where() const { return where_; }

  // The next byte without consuming it, -1 at the end.
  int Peek() const { return position_ < end_ ? module_[position_] : -1; }

  // `what` names the thing read, for messages.
  Result<std::uint8_t> Byte(std::string_view what);
  Result<std::uint32_t> U32(std::string_view what);
  Result<std::uint64_t> U64(std::string_view what);
  // A signed number of 32, 33 or 64 bits.
  Result<std::int64_t> Signed(unsigned bits, std::string_view what);
  // A length and that many bytes of valid UTF-8; points into the module.
  Result<std::string_view> Name(std::string_view what);
  // A count within its bound for which the rest of the stretch has enough bytes.
  Result<std::uint32_t> Count(const CountBound& bound);
  // An index below `count`.
  Result<std::uint32_t> Index(std::size_t count, std::string_view what);
  Status Skip(std::uint64_t bytes, std::string_view what);
  // The next `bytes` bytes as a stretch of their own, skipped here.
  Result<ByteReader> Take(std::uint64_t bytes, std::string_view where);
  // Fails unless the stretch is used up.
  Status End() const;

  // "the end of the import section" or "byte 0x1f".
  tl::unexpected<Error> Unexpected(std::string_view expected) const;
  // A reader of the same module that starts at `offset`, to read something again.
  static ByteReader At(std::span<const std::uint8_t> module, std::size_t offset);

 private:
  ByteReader(std::span<const std::uint8_t> module, std::size_t begin, std::size_t end,
             std::string_view where)
      : module_(module), position_(begin), end_(end), where_(where) {}

  Result<std::uint64_t> Unsigned(unsigned bits, std::string_view what);

  std::span<const std::uint8_t> module_;
  std::size_t position_;
  std::size_t end_;
  std::string_view where_;
};

}  // namespace bulkhead::admission
