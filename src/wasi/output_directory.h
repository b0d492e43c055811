// The directory in which a guest finds, or rather creates, its one output file. It exists only
// here: nothing of the host's directories can be seen from it. Only the granted name may come into
// being (kNotcapable for any other, and for directories and links); a name that is not there is
// kNoent; renaming moves nothing in or out (kXdev).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "wasi/descriptor.h"
#include "wasi/output_file.h"

namespace bulkhead::wasi {

class OutputDirectory final : public Directory {
 public:
  OutputDirectory(std::shared_ptr<OutputFile> file, std::optional<std::string> preopen_path)
      : Directory(std::move(preopen_path)), file_(std::move(file)) {}

  Answer<Filestat> Stat() override;
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
  enum class Place : std::uint8_t { kSelf, kFile, kNothing };

  // What `path` names. Walking through the file is kNotdir, through nothing kNoent, out of here
  // kNotcapable.
  Answer<Place> Resolve(const std::string& path) const;
  // For calls that would bring `path` into being.
  Answer<void> RefuseToCreate(const std::string& path) const;

  const std::shared_ptr<OutputFile> file_;
};

}  // namespace bulkhead::wasi
