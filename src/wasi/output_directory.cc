#include "wasi/output_directory.h"

#include <array>
#include <string_view>

#include "wasi/directory_listing.h"

namespace bulkhead::wasi {

Answer<Filestat> OutputDirectory::Stat() {
  Filestat stat;
  stat.dev = OutputFile::kDevice;
  stat.ino = OutputFile::kDirectoryInode;
  stat.filetype = FileType::kDirectory;
  stat.nlink = 1;
  return stat;
}

// The entry is published by the parent, after the run.
Answer<void> OutputDirectory::Sync(bool /*data_only*/) {
  return {};
}

Answer<std::shared_ptr<Descriptor>> OutputDirectory::Open(const OpenRequest& request) {
  const Place place = BH_WASI_TRY(Resolve(request.path));
  const bool create = (request.oflags & oflags::kCreat) != 0;
  const bool directory = (request.oflags & oflags::kDirectory) != 0;
  if (place == Place::kSelf) {
    if (create && (request.oflags & oflags::kExcl) != 0) {
      return Refuse(Errno::kExist);
    }
    if (create || request.write || (request.oflags & oflags::kTrunc) != 0) {
      return Refuse(Errno::kIsdir);
    }
    return std::make_shared<OutputDirectory>(file_, std::nullopt);
  }
  if (place == Place::kNothing) {
    return Refuse(create ? Errno::kNotcapable : Errno::kNoent);
  }
  const bool exists = file_->created();
  if (directory) {
    return Refuse(exists ? Errno::kNotdir : Errno::kNoent);
  }
  if (request.path.ends_with('/')) {
    return Refuse(exists ? Errno::kNotdir : create ? Errno::kIsdir : Errno::kNoent);
  }
  const std::uint64_t generation = BH_WASI_TRY(file_->Open(request.oflags));
  return std::make_shared<OutputHandle>(file_, generation, request);
}

Answer<Filestat> OutputDirectory::StatPath(const std::string& path, bool /*follow*/) {
  const Place place = BH_WASI_TRY(Resolve(path));
  if (place == Place::kSelf) {
    return Stat();
  }
  if (place == Place::kNothing) {
    return Refuse(Errno::kNoent);
  }
  const Filestat stat = BH_WASI_TRY(file_->StatExisting());
  if (path.ends_with('/')) {
    return Refuse(Errno::kNotdir);
  }
  return stat;
}

// The file's times are those of its publication.
Answer<void> OutputDirectory::SetPathTimes(const std::string& path, bool follow,
                                           const FileTimes& /*times*/) {
  BH_WASI_TRY(StatPath(path, follow));
  return Refuse(Errno::kNotsup);
}

Answer<std::string> OutputDirectory::ReadLink(const std::string& path) {
  BH_WASI_TRY(StatPath(path, false));
  return Refuse(Errno::kInval);
}

Answer<void> OutputDirectory::CreateDirectory(const std::string& path) {
  return RefuseToCreate(path);
}

Answer<void> OutputDirectory::RemoveDirectory(const std::string& path) {
  const Filestat stat = BH_WASI_TRY(StatPath(path, false));
  return Refuse(stat.filetype == FileType::kDirectory ? Errno::kInval : Errno::kNotdir);
}

Answer<void> OutputDirectory::Unlink(const std::string& path) {
  const Filestat stat = BH_WASI_TRY(StatPath(path, false));
  if (stat.filetype == FileType::kDirectory) {
    return Refuse(Errno::kIsdir);
  }
  return file_->Unlink();
}

Answer<void> OutputDirectory::Symlink(const std::string& /*text*/, const std::string& path) {
  return RefuseToCreate(path);
}

Answer<void> OutputDirectory::Rename(const std::string& from, Directory& target,
                                     const std::string& to) {
  const Filestat source = BH_WASI_TRY(StatPath(from, false));
  auto* other = dynamic_cast<OutputDirectory*>(&target);
  if (other == nullptr) {
    return Refuse(Errno::kXdev);
  }
  const Place destination = BH_WASI_TRY(other->Resolve(to));
  if (source.filetype == FileType::kDirectory || destination == Place::kSelf) {
    return Refuse(Errno::kBusy);
  }
  if (destination == Place::kNothing) {
    return Refuse(Errno::kNotcapable);
  }
  if (to.ends_with('/')) {
    return Refuse(Errno::kNotdir);
  }
  return {};  // onto itself
}

Answer<void> OutputDirectory::Link(const std::string& from, Directory& target,
                                   const std::string& to) {
  const Filestat source = BH_WASI_TRY(StatPath(from, false));
  auto* other = dynamic_cast<OutputDirectory*>(&target);
  if (other == nullptr) {
    return Refuse(Errno::kXdev);
  }
  if (source.filetype == FileType::kDirectory) {
    return Refuse(Errno::kPerm);
  }
  return other->RefuseToCreate(to);
}

Answer<std::uint32_t> OutputDirectory::ReadEntries(std::span<std::uint8_t> out,
                                                   std::uint64_t cookie) {
  struct Entry {
    std::string_view name;
    FileType type;
    std::uint64_t inode;
  };

  const std::array entries = {
      Entry{".", FileType::kDirectory, OutputFile::kDirectoryInode},
      Entry{"..", FileType::kDirectory, OutputFile::kDirectoryInode},
      Entry{file_->name(), FileType::kRegularFile, OutputFile::kFileInode},
  };
  const std::size_t count = file_->created() ? entries.size() : entries.size() - 1;
  DirectoryListing listing(out);
  for (std::uint64_t i = cookie; i < count && !listing.full(); ++i) {
    Dirent entry;
    entry.next = i + 1;
    entry.ino = entries[i].inode;
    entry.filetype = entries[i].type;
    listing.Add(entry, entries[i].name);
  }
  return listing.used_bytes();
}

Answer<OutputDirectory::Place> OutputDirectory::Resolve(const std::string& path) const {
  Place place = Place::kSelf;
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t length = std::min(rest.find('/'), rest.size());
    const std::string_view component = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (component.empty()) {
      continue;
    }
    if (place != Place::kSelf) {
      return Refuse(place == Place::kFile && file_->created() ? Errno::kNotdir : Errno::kNoent);
    }
    if (component == "..") {
      return Refuse(Errno::kNotcapable);
    }
    if (component != ".") {
      place = component == file_->name() ? Place::kFile : Place::kNothing;
    }
  }
  return place;
}

Answer<void> OutputDirectory::RefuseToCreate(const std::string& path) const {
  const Place place = BH_WASI_TRY(Resolve(path));
  const bool exists = place == Place::kSelf || (place == Place::kFile && file_->created());
  return Refuse(exists ? Errno::kExist : Errno::kNotcapable);
}

}  // namespace bulkhead::wasi
