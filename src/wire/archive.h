// Binary encoding over one declaration per message: `static void Fields(auto& archive, auto&
// message)`. Little-endian; strings and lists carry a u32 count; an optional carries one presence
// byte. The reader is strict: short input, a count above the declared bound, a flag other than 0 or
// 1, an enumerator outside its declared range and trailing bytes are errors; nothing is allocated
// beyond the declared bounds.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace bulkhead::wire {

static_assert(std::endian::native == std::endian::little,
              "integers are copied as they lie in memory");

// Upper bound of a string's bytes or a list's elements.
struct Max {
  std::uint32_t n;
};

// Largest legal enumerator; the smallest is 0.
template <class E>
struct LastEnumerator {
  E last;
};

template <class T>
concept FixedSize = std::is_integral_v<T> && !std::is_same_v<T, bool>;

class BinaryWriter {
 public:
  // True if every value was within its bounds; an encoder refuses to send what a decoder would
  // refuse.
  bool ok() const { return ok_; }

  std::string Take() && { return std::move(out_); }

  template <FixedSize T>
  void Field(const T& value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof bytes);
  }

  void Field(const bool& value) { Field(static_cast<std::uint8_t>(value ? 1 : 0)); }

  template <class E>
  void Field(const E& value, LastEnumerator<E> bound) {
    ok_ = ok_ && value <= bound.last;
    Field(static_cast<std::uint8_t>(value));
  }

  void Field(const std::string& value, Max max) {
    ok_ = ok_ && value.size() <= max.n;
    Field(static_cast<std::uint32_t>(value.size()));
    out_ += value;
  }

  template <std::size_t N>
  void Field(const std::array<std::uint8_t, N>& value) {
    out_.append(reinterpret_cast<const char*>(value.data()), N);
  }

  template <class M>
  void Field(const std::vector<M>& values, Max max) {
    ok_ = ok_ && values.size() <= max.n;
    Field(static_cast<std::uint32_t>(values.size()));
    for (const M& value : values) {
      M::Fields(*this, value);
    }
  }

  void Field(const std::vector<std::string>& values, Max count, Max each) {
    ok_ = ok_ && values.size() <= count.n;
    Field(static_cast<std::uint32_t>(values.size()));
    for (const std::string& value : values) {
      Field(value, each);
    }
  }

  template <class T>
  void Field(const std::optional<T>& value) {
    Field(value.has_value());
    if (value) {
      if constexpr (FixedSize<T>) {
        Field(*value);
      } else {
        T::Fields(*this, *value);
      }
    }
  }

  template <class T>
    requires requires(BinaryWriter& w, const T& t) { T::Fields(w, t); }
  void Field(const T& value) {
    T::Fields(*this, value);
  }

 private:
  bool ok_ = true;
  std::string out_;
};

class BinaryReader {
 public:
  explicit BinaryReader(std::string_view in) : in_(in) {}

  // The first problem: "truncated", "invalid-payload", "trailing-bytes"; empty if none so far.
  std::string_view problem() const { return problem_; }

  // Call last: input left over is a problem too.
  bool Finish() {
    if (problem_.empty() && !in_.empty()) {
      problem_ = "trailing-bytes";
    }
    return problem_.empty();
  }

  template <FixedSize T>
  void Field(T& value) {
    if (const char* bytes = Take(sizeof value); bytes != nullptr) {
      std::memcpy(&value, bytes, sizeof value);
    }
  }

  void Field(bool& value) {
    std::uint8_t flag = 0;
    Field(flag);
    Require(flag <= 1);
    value = flag == 1;
  }

  template <class E>
  void Field(E& value, LastEnumerator<E> bound) {
    std::uint8_t raw = 0;
    Field(raw);
    if (raw <= static_cast<std::uint8_t>(bound.last)) {
      value = static_cast<E>(raw);
    } else {
      Require(false);
    }
  }

  void Field(std::string& value, Max max) {
    std::uint32_t size = 0;
    Field(size);
    Require(size <= max.n);
    if (const char* bytes = Take(size); bytes != nullptr) {
      value.assign(bytes, size);
    }
  }

  template <std::size_t N>
  void Field(std::array<std::uint8_t, N>& value) {
    if (const char* bytes = Take(N); bytes != nullptr) {
      std::memcpy(value.data(), bytes, N);
    }
  }

  template <class M>
  void Field(std::vector<M>& values, Max max) {
    ReadList(values, max, [this](M& value) { M::Fields(*this, value); });
  }

  void Field(std::vector<std::string>& values, Max count, Max each) {
    ReadList(values, count, [this, each](std::string& value) { Field(value, each); });
  }

  template <class T>
  void Field(std::optional<T>& value) {
    bool present = false;
    Field(present);
    value.reset();
    if (present && problem_.empty()) {
      value.emplace();
      if constexpr (FixedSize<T>) {
        Field(*value);
      } else {
        T::Fields(*this, *value);
      }
    }
  }

  template <class T>
    requires requires(BinaryReader& r, T& t) { T::Fields(r, t); }
  void Field(T& value) {
    T::Fields(*this, value);
  }

 private:
  void Require(bool legal) {
    if (problem_.empty() && !legal) {
      problem_ = "invalid-payload";
    }
  }

  const char* Take(std::size_t bytes) {
    if (problem_.empty() && bytes > in_.size()) {
      problem_ = "truncated";
    }
    if (!problem_.empty()) {
      return nullptr;
    }
    const char* start = in_.data();
    in_.remove_prefix(bytes);
    return start;
  }

  template <class T, class ReadOne>
  void ReadList(std::vector<T>& values, Max max, ReadOne read_one) {
    std::uint32_t count = 0;
    Field(count);
    Require(count <= max.n);
    values.clear();
    for (std::uint32_t i = 0; i < count && problem_.empty(); ++i) {
      read_one(values.emplace_back());
    }
  }

  std::string_view in_;
  std::string_view problem_;
};

}  // namespace bulkhead::wire
