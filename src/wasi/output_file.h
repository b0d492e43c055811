// The one file a guest may produce: whether it exists for the guest, and how large it may become.
// The host's file is there all along; creating and unlinking only change what the guest sees.
// Shared by the output directory, its handles and the report; one mutex makes each operation whole.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "wasi/descriptor.h"

namespace bulkhead::wasi {

class OutputFile {
 public:
  explicit OutputFile(OutputGrant grant) : grant_(std::move(grant)) {}

  // Inode numbers on the output directory's own device.
  static constexpr std::uint64_t kDevice = ~0ULL;
  static constexpr std::uint64_t kDirectoryInode = 1;
  static constexpr std::uint64_t kFileInode = 2;

  const std::string& name() const { return grant_.name; }

  bool created() const;
  bool limit_hit() const;
  // 0 unless created.
  std::uint64_t size() const;

  // Creates what is not there (which bumps the generation), else does what `oflags` say. The
  // generation is the handle's ticket for the calls below.
  Answer<std::uint64_t> Open(std::uint16_t oflags);
  Answer<void> Unlink();
  // kNoent unless created.
  Answer<Filestat> StatExisting() const;

  // kStale for a handle of a file that was unlinked since: its content is gone.
  // At `offset`, whatever the request says.
  Answer<std::uint32_t> Read(std::uint64_t generation, std::uint64_t offset,
                             const IoRequest& request);
  // At `request.offset`, or at the end without one; `end` receives the position after the last
  // byte. Like a file size limit: what still fits is written, and kFbig when nothing does.
  Answer<std::uint32_t> Write(std::uint64_t generation, const IoRequest& request,
                              std::uint64_t& end);
  Answer<void> SetSize(std::uint64_t generation, std::uint64_t bytes);
  Answer<void> Allocate(std::uint64_t generation, FileRange range);
  Answer<Filestat> Stat(std::uint64_t generation) const;
  Answer<void> Sync(std::uint64_t generation, bool data_only);

 private:
  // All private members need the mutex.
  Answer<void> RequireCurrent(std::uint64_t generation) const;
  Answer<std::uint64_t> HostSize() const;
  Answer<void> Truncate(std::uint64_t bytes);
  Answer<Filestat> FileStat() const;

  const OutputGrant grant_;
  mutable std::mutex mutex_;
  bool created_ = false;
  bool limit_hit_ = false;
  std::uint64_t generation_ = 0;
};

// An open output file: a position and flags of its own.
class OutputHandle final : public Descriptor {
 public:
  OutputHandle(std::shared_ptr<OutputFile> file, std::uint64_t generation,
               const OpenRequest& request)
      : file_(std::move(file)),
        generation_(generation),
        opened_for_write_(request.write),
        flags_(request.fdflags) {}

  FileType file_type() const override { return FileType::kRegularFile; }

  Rights applicable_rights() const override;
  Errno InapplicableError(Rights missing) const override;
  std::uint16_t flags() const override;
  Answer<void> SetFlags(std::uint16_t flags) override;

  Answer<std::uint32_t> Read(const IoRequest& request) override;
  Answer<std::uint32_t> Write(const IoRequest& request) override;
  Answer<std::uint64_t> Seek(std::int64_t offset, std::uint8_t whence) override;
  Answer<void> Sync(bool data_only) override;
  Answer<void> Advise(FileRange range, std::uint8_t advice) override;
  Answer<void> Allocate(FileRange range) override;
  Answer<Filestat> Stat() override;
  Answer<void> SetSize(std::uint64_t bytes) override;
  std::uint64_t BytesReadable() override;

 private:
  const std::shared_ptr<OutputFile> file_;
  const std::uint64_t generation_;
  const bool opened_for_write_;
  mutable std::mutex mutex_;  // taken before the file's
  std::uint16_t flags_;
  std::uint64_t position_ = 0;
};

}  // namespace bulkhead::wasi
