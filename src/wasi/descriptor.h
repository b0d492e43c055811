// What a guest's descriptor number stands for. Descriptor is anything open, Directory adds the path
// operations. Objects are shared between the table and the calls in progress, so closing a number
// never pulls an object from under another thread; all operations may be called from any thread.
// Rights are the table's business: an operation is only reached when its right was granted, and a
// right that means nothing to a kind of descriptor is never granted (applicable_rights), so the
// defaults below are the answer for "does not apply".
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "wasi/abi.h"
#include "wasi/answer.h"

namespace bulkhead::wasi {

class Directory;

struct IoRequest {
  std::span<const iovec> buffers;       // in guest memory
  std::uint32_t bytes = 0;              // their sum
  std::optional<std::uint64_t> offset;  // none: the descriptor's own position
  BorrowedFd stop;
};

struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// As utimensat(2) takes them, UTIME_NOW and UTIME_OMIT included.
struct FileTimes {
  timespec access = {};
  timespec modification = {};
};

class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  virtual ~Descriptor() = default;

  virtual FileType file_type() const = 0;
  virtual Rights applicable_rights() const = 0;
  // The error of a call whose rights are not applicable: it names the mistake (kIsdir, kNotdir,
  // kSpipe).
  virtual Errno InapplicableError(Rights missing) const = 0;

  virtual Directory* AsDirectory() { return nullptr; }

  virtual std::uint16_t flags() const = 0;
  virtual Answer<void> SetFlags(std::uint16_t flags) = 0;

  virtual Answer<std::uint32_t> Read(const IoRequest& request);
  virtual Answer<std::uint32_t> Write(const IoRequest& request);
  virtual Answer<std::uint64_t> Seek(std::int64_t offset, std::uint8_t whence);
  virtual Answer<void> Sync(bool data_only);
  virtual Answer<void> Advise(FileRange range, std::uint8_t advice);
  virtual Answer<void> Allocate(FileRange range);
  virtual Answer<Filestat> Stat() = 0;
  virtual Answer<void> SetSize(std::uint64_t bytes);
  virtual Answer<void> SetTimes(const FileTimes& times);

  // For poll_oneoff: what to wait on; invalid means always ready.
  virtual BorrowedFd poll_fd() const { return BorrowedFd(); }

  // A lower bound of what a read would give once ready.
  virtual std::uint64_t BytesReadable() { return 0; }
};

struct OpenRequest {
  std::string path;
  bool follow = false;
  std::uint16_t oflags = 0;
  std::uint16_t fdflags = 0;
  bool read = false;
  bool write = false;
};

// Paths are valid: UTF-8 without NUL, not empty, not absolute (path.h). They never lead out of the
// directory.
class Directory : public Descriptor {
 public:
  explicit Directory(std::optional<std::string> preopen_path)
      : preopen_path_(std::move(preopen_path)) {}

  // Set for a preopened directory only.
  const std::optional<std::string>& preopen_path() const { return preopen_path_; }

  FileType file_type() const final { return FileType::kDirectory; }

  Rights applicable_rights() const final { return rights::kDirectory; }

  Errno InapplicableError(Rights missing) const final;

  Directory* AsDirectory() final { return this; }

  std::uint16_t flags() const final { return 0; }

  Answer<void> SetFlags(std::uint16_t flags) final;

  virtual Answer<std::shared_ptr<Descriptor>> Open(const OpenRequest& request) = 0;
  virtual Answer<Filestat> StatPath(const std::string& path, bool follow) = 0;
  virtual Answer<void> SetPathTimes(const std::string& path, bool follow,
                                    const FileTimes& times) = 0;
  virtual Answer<std::string> ReadLink(const std::string& path) = 0;
  virtual Answer<void> CreateDirectory(const std::string& path) = 0;
  virtual Answer<void> RemoveDirectory(const std::string& path) = 0;
  virtual Answer<void> Unlink(const std::string& path) = 0;
  virtual Answer<void> Symlink(const std::string& text, const std::string& path) = 0;
  virtual Answer<void> Rename(const std::string& from, Directory& target,
                              const std::string& to) = 0;
  virtual Answer<void> Link(const std::string& from, Directory& target, const std::string& to) = 0;
  // Fills `out` with Dirents from `cookie` on; fewer bytes than it holds mean the end of the
  // directory.
  virtual Answer<std::uint32_t> ReadEntries(std::span<std::uint8_t> out, std::uint64_t cookie) = 0;

 private:
  std::optional<std::string> preopen_path_;
};

}  // namespace bulkhead::wasi
