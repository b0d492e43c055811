// Standard input, output and error: a byte stream without a position. Waits with back-pressure, and
// a stop ends the wait. Calls on one stream from several threads take turns, so that one write
// stays in one piece. Without a host descriptor input is at its end and output is accepted and
// discarded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "wasi/descriptor.h"

namespace bulkhead::wasi {

class StdioStream final : public Descriptor {
 public:
  enum class Direction : std::uint8_t { kInput, kOutput };

  // An input's descriptor is only ever polled and read; an output's must be non-blocking already.
  StdioStream(Direction direction, UniqueFd fd, std::uint64_t bytes_max)
      : direction_(direction), fd_(std::move(fd)), bytes_max_(bytes_max) {}

  // Facts. Bytes count when accepted from the guest.
  std::uint64_t bytes() const { return bytes_; }

  bool reader_gone() const { return reader_gone_; }

  bool limit_hit() const { return limit_hit_; }

  // Not a character device even if the host has one: the guest talks to us, and must not take it
  // for a terminal.
  FileType file_type() const override { return FileType::kUnknown; }

  Rights applicable_rights() const override;
  Errno InapplicableError(Rights missing) const override;

  std::uint16_t flags() const override { return flags_; }

  Answer<void> SetFlags(std::uint16_t flags) override;

  Answer<std::uint32_t> Read(const IoRequest& request) override;
  Answer<std::uint32_t> Write(const IoRequest& request) override;
  Answer<Filestat> Stat() override;

  BorrowedFd poll_fd() const override { return fd_.borrow(); }

  std::uint64_t BytesReadable() override { return fd_.valid() ? 1 : 0; }

 private:
  bool nonblocking() const { return (flags_ & fdflags::kNonblock) != 0; }

  // The first `bytes` of the request.
  Answer<std::uint32_t> WriteFirst(std::uint32_t bytes, const IoRequest& request);

  const Direction direction_;
  const UniqueFd fd_;
  const std::uint64_t bytes_max_;  // 0: unlimited
  std::mutex turn_;  // held while waiting too; a stop wakes whoever holds it, then the next
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint16_t> flags_ = 0;
  std::atomic<bool> reader_gone_ = false;
  std::atomic<bool> limit_hit_ = false;
};

}  // namespace bulkhead::wasi
