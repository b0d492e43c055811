// Keeps the last bytes of a stream whose length nobody controls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

class TailBuffer {
 public:
  explicit TailBuffer(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void Append(std::string_view bytes);

  std::uint64_t total_bytes() const { return total_bytes_; }

  bool cut() const { return total_bytes_ > bytes_max_; }

  // The last bytes, at most bytes_max.
  std::string Tail() const;
  // For people: valid printable UTF-8; starts with "[... N bytes cut] " when earlier bytes were
  // dropped.
  std::string Text() const;

 private:
  std::size_t bytes_max_;
  std::uint64_t total_bytes_ = 0;
  std::string data_;  // at most twice bytes_max_, trimmed when it gets there
};

}  // namespace bulkhead
