// A bounds-checked window on one guest's 32-bit linear memory. It owns nothing and lives for one
// host call: the memory may move or grow afterwards. Other guest threads may write at any time, so
// each value is read once and never checked again in place. Every access answers whether it was
// inside; nothing outside is ever touched.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace bulkhead::wasi {

struct GuestMemory {
  std::uint8_t* base = nullptr;
  std::uint64_t size = 0;

  // Cannot overflow: both operands are at most 32 and 64 bits wide and the subtraction comes after
  // the comparison.
  bool Contains(std::uint32_t address, std::uint64_t bytes) const {
    return bytes <= size && address <= size - bytes;
  }

  std::optional<std::span<std::uint8_t>> Span(std::uint32_t address, std::uint64_t bytes) const {
    if (!Contains(address, bytes)) {
      return std::nullopt;
    }
    return std::span<std::uint8_t>(base + address, static_cast<std::size_t>(bytes));
  }

  // WebAssembly is little-endian, as is every host we build for. No alignment is required.
  template <class T>
  std::optional<T> Get(std::uint32_t address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!Contains(address, sizeof(T))) {
      return std::nullopt;
    }
    T value;
    std::memcpy(&value, base + address, sizeof(T));
    return value;
  }

  template <class T>
  [[nodiscard]] bool Put(std::uint32_t address, const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!Contains(address, sizeof(T))) {
      return false;
    }
    std::memcpy(base + address, &value, sizeof(T));
    return true;
  }
};

}  // namespace bulkhead::wasi
