// A sequence with room for `capacity` elements in itself: what tables are made of that exist before
// the program runs. A value type. More elements than there is room for are a bug of ours, and do
// not compile where the table is made at compile time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "base/check.h"

namespace bulkhead {

template <class T, std::size_t capacity>
class FixedVector {
 public:
  constexpr FixedVector() = default;

  constexpr FixedVector(std::initializer_list<T> elements) {
    for (const T& element : elements) {
      push_back(element);
    }
  }

  constexpr void push_back(const T& element) {
    BH_CHECK(size_ < capacity);
    elements_[size_++] = element;
  }

  constexpr std::size_t size() const { return size_; }

  constexpr bool empty() const { return size_ == 0; }

  constexpr T& operator[](std::size_t i) { return elements_[i]; }

  constexpr const T& operator[](std::size_t i) const { return elements_[i]; }

  constexpr T& back() { return elements_[size_ - 1]; }

  constexpr const T* data() const { return elements_.data(); }

  constexpr const T* begin() const { return elements_.data(); }

  constexpr const T* end() const { return elements_.data() + size_; }

  constexpr bool operator==(const FixedVector& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  std::array<T, capacity> elements_{};
  std::size_t size_ = 0;
};

}  // namespace bulkhead
