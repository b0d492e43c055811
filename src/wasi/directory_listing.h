// Packs directory entries into a guest's buffer the way fd_readdir promises: entries back to back,
// the last one cut off where the buffer ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "wasi/abi.h"

namespace bulkhead::wasi {

class DirectoryListing {
 public:
  explicit DirectoryListing(std::span<std::uint8_t> out) : out_(out) {}

  bool full() const { return used_ == out_.size(); }

  std::uint32_t used_bytes() const { return static_cast<std::uint32_t>(used_); }

  // Sets entry.name_bytes.
  void Add(Dirent entry, std::string_view name) {
    entry.name_bytes = static_cast<std::uint32_t>(name.size());
    Append(&entry, sizeof entry);
    Append(name.data(), name.size());
  }

 private:
  void Append(const void* data, std::size_t bytes) {
    const std::size_t fits = std::min(bytes, out_.size() - used_);
    if (fits != 0) {
      std::memcpy(out_.data() + used_, data, fits);
    }
    used_ += fits;
  }

  std::span<std::uint8_t> out_;
  std::size_t used_ = 0;
};

}  // namespace bulkhead::wasi
