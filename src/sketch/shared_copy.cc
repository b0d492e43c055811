#include "sketch/shared_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace bulkhead::sketch {
namespace {

// Guest memory has no type of its own, so a word may alias the bytes it is made of.
using SharedWord [[gnu::may_alias]] = std::uint64_t;
constexpr std::size_t kWordBytes = sizeof(SharedWord);

// How many of `bytes` come before the first word boundary at or behind `shared`.
std::size_t BytesBeforeWord(const std::uint8_t* shared, std::size_t bytes) {
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(shared) % kWordBytes;
  return misaligned == 0 ? 0 : std::min(bytes, kWordBytes - misaligned);
}

void CopyBytesFrom(std::uint8_t* to, const std::uint8_t* shared_from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    to[i] = __atomic_load_n(shared_from + i, __ATOMIC_RELAXED);
  }
}

void CopyBytesTo(std::uint8_t* shared_to, const std::uint8_t* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    __atomic_store_n(shared_to + i, from[i], __ATOMIC_RELAXED);
  }
}

}  // namespace

void CopyFromShared(std::span<std::uint8_t> to, const std::uint8_t* shared_from) {
  std::uint8_t* target = to.data();
  std::size_t left = to.size();
  const std::size_t head = BytesBeforeWord(shared_from, left);
  CopyBytesFrom(target, shared_from, head);
  for (target += head, shared_from += head, left -= head; left >= kWordBytes; left -= kWordBytes) {
    const std::uint64_t word =
        __atomic_load_n(reinterpret_cast<const SharedWord*>(shared_from), __ATOMIC_RELAXED);
    std::memcpy(target, &word, kWordBytes);
    target += kWordBytes;
    shared_from += kWordBytes;
  }
  CopyBytesFrom(target, shared_from, left);
}

void CopyToShared(std::uint8_t* shared_to, std::span<const std::uint8_t> from) {
  const std::uint8_t* source = from.data();
  std::size_t left = from.size();
  const std::size_t head = BytesBeforeWord(shared_to, left);
  CopyBytesTo(shared_to, source, head);
  for (source += head, shared_to += head, left -= head; left >= kWordBytes; left -= kWordBytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, source, kWordBytes);
    __atomic_store_n(reinterpret_cast<SharedWord*>(shared_to), word, __ATOMIC_RELAXED);
    source += kWordBytes;
    shared_to += kWordBytes;
  }
  CopyBytesTo(shared_to, source, left);
}

}  // namespace bulkhead::sketch
