// Anything but a directory that was opened in a granted directory: regular files, and whatever else
// lies there. The kernel keeps the position and the append flag; the description is nobody else's.
#pragma once

#include <atomic>
#include <cstdint>

#include "wasi/descriptor.h"

namespace bulkhead::wasi {

class HostFile final : public Descriptor {
 public:
  struct Options {
    FileType type = FileType::kUnknown;
    std::uint16_t flags = 0;        // fdflags as asked for
    bool opened_for_write = false;  // else nothing that changes the content is ever granted
    bool writable_grant = false;    // the directory's: may metadata change?
  };

  // `fd` is non-blocking: waiting is done here, where a stop can end it.
  HostFile(UniqueFd fd, const Options& options)
      : fd_(std::move(fd)), options_(options), flags_(options.flags) {}

  FileType file_type() const override { return options_.type; }

  Rights applicable_rights() const override;
  Errno InapplicableError(Rights missing) const override;

  std::uint16_t flags() const override { return flags_; }

  Answer<void> SetFlags(std::uint16_t flags) override;

  Answer<std::uint32_t> Read(const IoRequest& request) override;
  Answer<std::uint32_t> Write(const IoRequest& request) override;
  Answer<std::uint64_t> Seek(std::int64_t offset, std::uint8_t whence) override;
  Answer<void> Sync(bool data_only) override;
  Answer<void> Advise(FileRange range, std::uint8_t advice) override;
  Answer<void> Allocate(FileRange range) override;
  Answer<Filestat> Stat() override;
  Answer<void> SetSize(std::uint64_t bytes) override;
  Answer<void> SetTimes(const FileTimes& times) override;

  BorrowedFd poll_fd() const override { return fd_.borrow(); }

  std::uint64_t BytesReadable() override;

 private:
  const UniqueFd fd_;
  const Options options_;
  std::atomic<std::uint16_t> flags_;
};

}  // namespace bulkhead::wasi
