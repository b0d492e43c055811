// Module bytes in one sealed memory file: written once, then unchangeable for everybody who holds
// the descriptor, and mapped read-only once. Owned through shared_ptr; immutable, any thread.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace bulkhead::admission {

class SealedImage {
 public:
  // Reads `source` from its position to its end: a regular file, a pipe, a socket. Refuses before
  // reading when the file's size says that it is too large, else as soon as one byte too many has
  // come. `name` is for messages. Fails with kIo (a directory, a read error), kResourceExhausted,
  // kModuleRefused "module-too-large".
  static Result<std::shared_ptr<const SealedImage>> ReadFrom(BorrowedFd source,
                                                             std::string_view name,
                                                             std::uint64_t bytes_max);
  static Result<std::shared_ptr<const SealedImage>> CopyOf(std::span<const std::uint8_t> bytes,
                                                           std::uint64_t bytes_max);

  SealedImage(const SealedImage&) = delete;
  SealedImage& operator=(const SealedImage&) = delete;
  ~SealedImage();

  BorrowedFd descriptor() const { return file_.borrow(); }

  std::span<const std::uint8_t> bytes() const { return bytes_; }

  // 64 lower-case hex digits, computed at the first call.
  const std::string& Sha256() const;

 private:
  SealedImage(UniqueFd file, std::span<const std::uint8_t> bytes)
      : file_(std::move(file)), bytes_(bytes) {}

  static Result<std::shared_ptr<const SealedImage>> Seal(UniqueFd file, std::uint64_t bytes);

  UniqueFd file_;
  std::span<const std::uint8_t> bytes_;  // the mapping
  mutable std::once_flag sha256_once_;
  mutable std::string sha256_;
};

}  // namespace bulkhead::admission
