// A directory of the host that was granted to the guest, or one beneath it. Everything resolves
// beneath it; the kernel decides, so a race with a rename cannot lead out. A read-only grant
// behaves like a read-only mount: whatever would change something is kRofs, however generous the
// rights look.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "wasi/descriptor.h"

namespace bulkhead::wasi {

class HostDirectory final : public Directory {
 public:
  // `dir` may be O_PATH and its description may be shared: nothing here uses its position.
  HostDirectory(UniqueFd dir, bool writable, std::optional<std::string> preopen_path)
      : Directory(std::move(preopen_path)), dir_(std::move(dir)), writable_(writable) {}

  Answer<Filestat> Stat() override;
  Answer<void> SetTimes(const FileTimes& times) override;
  Answer<void> Sync(bool data_only) override;

  Answer<std::shared_ptr<Descriptor>> Open(const OpenRequest& request) override;
  Answer<Filestat> StatPath(const std::string& path, bool follow) override;
  Answer<void> SetPathTimes(const std::string& path, bool follow, const FileTimes& times) override;
  Answer<std::string> ReadLink(const std::string& path) override;
  Answer<void> CreateDirectory(const std::string& path) override;
  Answer<void> RemoveDirectory(const std::string& path) override;
  Answer<void> Unlink(const std::string& path) override;
  Answer<void> Symlink(const std::string& text, const std::string& path) override;
  Answer<void> Rename(const std::string& from, Directory& target, const std::string& to) override;
  Answer<void> Link(const std::string& from, Directory& target, const std::string& to) override;
  Answer<std::uint32_t> ReadEntries(std::span<std::uint8_t> out, std::uint64_t cookie) override;

 private:
  Answer<void> RequireWritable() const;
  Answer<UniqueFd> OpenHost(const OpenRequest& request) const;
  // A description of our own, for what needs a position or a real open. Call with listing_mutex_
  // held.
  Answer<BorrowedFd> Listing();

  const UniqueFd dir_;
  const bool writable_;
  std::mutex listing_mutex_;
  UniqueFd listing_;  // opened on first use; guarded by listing_mutex_, and so is its position
};

}  // namespace bulkhead::wasi
