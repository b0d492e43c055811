#include "base/tail_buffer.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace bulkhead {

void TailBuffer::Append(std::string_view bytes) {
  total_bytes_ += bytes.size();
  if (bytes.size() >= bytes_max_) {
    data_.assign(bytes.substr(bytes.size() - bytes_max_));
    return;
  }
  data_ += bytes;
  if (data_.size() > 2 * bytes_max_) {
    data_.erase(0, data_.size() - bytes_max_);
  }
}

std::string TailBuffer::Tail() const {
  return data_.size() <= bytes_max_ ? data_ : data_.substr(data_.size() - bytes_max_);
}

std::string TailBuffer::Text() const {
  std::string tail = Tail();
  if (!cut()) {
    return Printable(tail);
  }
  // The cut may have split a character: drop its leftover continuation bytes.
  std::size_t start = 0;
  while (start < tail.size() && start < 3 &&
         (static_cast<unsigned char>(tail[start]) & 0xC0U) == 0x80U) {
    ++start;
  }
  const std::uint64_t dropped = total_bytes_ - (tail.size() - start);
  return fmt::format("[... {} bytes cut] ", dropped) + Printable(tail.substr(start));
}

}  // namespace bulkhead
