#include "wasi/host_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "wasi/directory_listing.h"
#include "wasi/host_file.h"
#include "wasi/host_stat.h"
#include "wasi/path.h"

namespace bulkhead::wasi {
namespace {

// The process's umask applies, as for any program.
constexpr unsigned kFileMode = 0666;
constexpr unsigned kDirectoryMode = 0777;

Answer<void> Done(int result) {
  if (result != 0) {
    return RefuseHost();
  }
  return {};
}

int HostOpenFlags(const OpenRequest& request) {
  int flags = request.write ? (request.read ? O_RDWR : O_WRONLY) : O_RDONLY;
  const auto add = [&](bool asked, int host) { flags |= asked ? host : 0; };
  add((request.oflags & oflags::kCreat) != 0, O_CREAT);
  add((request.oflags & oflags::kDirectory) != 0, O_DIRECTORY);
  add((request.oflags & oflags::kExcl) != 0, O_EXCL);
  add((request.oflags & oflags::kTrunc) != 0, O_TRUNC);
  add((request.fdflags & fdflags::kAppend) != 0, O_APPEND);
  add((request.fdflags & fdflags::kDsync) != 0, O_DSYNC);
  add((request.fdflags & (fdflags::kSync | fdflags::kRsync)) != 0, O_SYNC);
  add(!request.follow, O_NOFOLLOW);
  return flags;
}

FileType FileTypeOfEntry(unsigned char type) {
  return FileTypeOfMode(static_cast<mode_t>(DTTOIF(type)));
}

// Adds the entries getdents64 put into `block` until the listing is full. A name that is not UTF-8
// cannot be spoken of in this interface, so to the guest it does not exist.
void AddEntries(std::span<const std::uint8_t> block, DirectoryListing& listing) {
  while (!block.empty() && !listing.full()) {
    dirent64 entry;
    std::memcpy(&entry, block.data(), offsetof(dirent64, d_name));
    const auto* name = reinterpret_cast<const char*>(block.data() + offsetof(dirent64, d_name));
    const std::string_view text(name, strnlen(name, entry.d_reclen - offsetof(dirent64, d_name)));
    if (IsUtf8(text)) {
      Dirent out;
      out.next = static_cast<std::uint64_t>(entry.d_off);
      out.ino = entry.d_ino;
      out.filetype = FileTypeOfEntry(entry.d_type);
      listing.Add(out, text);
    }
    block = block.subspan(entry.d_reclen);
  }
}

}  // namespace

Answer<Filestat> HostDirectory::Stat() {
  return ToFilestat(BH_WASI_TRY(StatHost(dir_.borrow())));
}

Answer<void> HostDirectory::SetTimes(const FileTimes& times) {
  BH_WASI_TRY(RequireWritable());
  const std::lock_guard lock(listing_mutex_);
  return SetHostTimes(BH_WASI_TRY(Listing()), times);
}

Answer<void> HostDirectory::Sync(bool data_only) {
  const std::lock_guard lock(listing_mutex_);
  const BorrowedFd listing = BH_WASI_TRY(Listing());
  return Done(data_only ? fdatasync(listing.get()) : fsync(listing.get()));
}

Answer<std::shared_ptr<Descriptor>> HostDirectory::Open(const OpenRequest& request) {
  UniqueFd fd = BH_WASI_TRY(OpenHost(request));
  const FileType type = FileTypeOfMode(BH_WASI_TRY(StatHost(fd.borrow())).st_mode);
  if (type == FileType::kDirectory) {
    return std::make_shared<HostDirectory>(std::move(fd), writable_, std::nullopt);
  }
  HostFile::Options options;
  options.type = type;
  options.flags = request.fdflags;
  options.opened_for_write = request.write;
  options.writable_grant = writable_;
  return std::make_shared<HostFile>(std::move(fd), options);
}

Answer<UniqueFd> HostDirectory::OpenHost(const OpenRequest& request) const {
  OpenRequest allowed = request;
  if (!writable_) {
    if (request.write || (request.oflags & oflags::kTrunc) != 0) {
      return Refuse(Errno::kRofs);
    }
    // As on a read-only mount, asking to create is fine as long as there is nothing to create.
    allowed.oflags &= static_cast<std::uint16_t>(~(oflags::kCreat | oflags::kExcl));
  }
  const unsigned mode = (allowed.oflags & oflags::kCreat) != 0 ? kFileMode : 0;
  Answer<UniqueFd> fd = OpenBeneath(dir_.borrow(), request.path, HostOpenFlags(allowed), mode);
  if (allowed.oflags == request.oflags) {
    return fd;
  }
  if (!fd && fd.error().error == Errno::kNoent) {
    return Refuse(Errno::kRofs);
  }
  if (fd && (request.oflags & oflags::kExcl) != 0) {
    return Refuse(Errno::kExist);
  }
  return fd;
}

Answer<Filestat> HostDirectory::StatPath(const std::string& path, bool follow) {
  const UniqueFd fd =
      BH_WASI_TRY(OpenBeneath(dir_.borrow(), path, O_PATH | (follow ? 0 : O_NOFOLLOW)));
  return ToFilestat(BH_WASI_TRY(StatHost(fd.borrow())));
}

Answer<void> HostDirectory::SetPathTimes(const std::string& path, bool follow,
                                         const FileTimes& times) {
  BH_WASI_TRY(RequireWritable());
  if (!follow && BH_WASI_TRY(StatPath(path, false)).filetype == FileType::kSymbolicLink) {
    // A link cannot be opened, and the call that needs no descriptor is refused to the worker: it
    // would reach whatever the user owns.
    return Refuse(Errno::kNotsup);
  }
  const int flags = follow ? 0 : O_NOFOLLOW;
  Answer<UniqueFd> fd = OpenBeneath(dir_.borrow(), path, O_RDONLY | flags);
  if (!fd && fd.error().error == Errno::kAcces) {
    fd = OpenBeneath(dir_.borrow(), path, O_WRONLY | flags);
  }
  return SetHostTimes(BH_WASI_TRY(std::move(fd)).borrow(), times);
}

Answer<std::string> HostDirectory::ReadLink(const std::string& path) {
  const UniqueFd link = BH_WASI_TRY(OpenBeneath(dir_.borrow(), path, O_PATH | O_NOFOLLOW));
  if (!S_ISLNK(BH_WASI_TRY(StatHost(link.borrow())).st_mode)) {
    return Refuse(Errno::kInval);
  }
  std::string text(kPathBytesMax, '\0');
  const ssize_t bytes = readlinkat(link.get(), "", text.data(), text.size());
  if (bytes < 0) {
    return RefuseHost();
  }
  text.resize(static_cast<std::size_t>(bytes));
  if (!IsUtf8(text)) {
    return Refuse(Errno::kIlseq);
  }
  return text;
}

Answer<void> HostDirectory::CreateDirectory(const std::string& path) {
  BH_WASI_TRY(RequireWritable());
  const EntryName entry = BH_WASI_TRY(EntryName::Resolve(dir_.borrow(), path, Errno::kExist));
  return Done(mkdirat(entry.parent().get(), entry.name(), kDirectoryMode));
}

Answer<void> HostDirectory::RemoveDirectory(const std::string& path) {
  BH_WASI_TRY(RequireWritable());
  const EntryName entry = BH_WASI_TRY(EntryName::Resolve(dir_.borrow(), path, Errno::kInval));
  return Done(unlinkat(entry.parent().get(), entry.name(), AT_REMOVEDIR));
}

Answer<void> HostDirectory::Unlink(const std::string& path) {
  BH_WASI_TRY(RequireWritable());
  const EntryName entry = BH_WASI_TRY(EntryName::Resolve(dir_.borrow(), path, Errno::kIsdir));
  return Done(unlinkat(entry.parent().get(), entry.name(), 0));
}

Answer<void> HostDirectory::Symlink(const std::string& text, const std::string& path) {
  BH_WASI_TRY(RequireWritable());
  const EntryName entry = BH_WASI_TRY(EntryName::Resolve(dir_.borrow(), path, Errno::kExist));
  const Answer<void> made = Done(symlinkat(text.c_str(), entry.parent().get(), entry.name()));
  if (!made && made.error().error == Errno::kExist && entry.has_trailing_slash()) {
    BH_WASI_TRY(
        OpenBeneath(entry.parent(), entry.name(), O_PATH));  // kNotdir says more, if it is so
  }
  return made;
}

Answer<void> HostDirectory::Rename(const std::string& from, Directory& target,
                                   const std::string& to) {
  auto* other = dynamic_cast<HostDirectory*>(&target);
  if (other == nullptr) {
    return Refuse(Errno::kXdev);
  }
  BH_WASI_TRY(RequireWritable());
  BH_WASI_TRY(other->RequireWritable());
  const EntryName source = BH_WASI_TRY(EntryName::Resolve(dir_.borrow(), from, Errno::kBusy));
  const EntryName destination =
      BH_WASI_TRY(EntryName::Resolve(other->dir_.borrow(), to, Errno::kBusy));
  return Done(renameat(source.parent().get(), source.name(), destination.parent().get(),
                       destination.name()));
}

Answer<void> HostDirectory::Link(const std::string& from, Directory& target,
                                 const std::string& to) {
  auto* other = dynamic_cast<HostDirectory*>(&target);
  if (other == nullptr) {
    return Refuse(Errno::kXdev);
  }
  // A link in a writable grant to a file of a read-only one would make that file writable.
  BH_WASI_TRY(RequireWritable());
  BH_WASI_TRY(other->RequireWritable());
  const EntryName source = BH_WASI_TRY(EntryName::Resolve(dir_.borrow(), from, Errno::kPerm));
  if (source.has_trailing_slash()) {
    // linkat would follow it to wherever it leads. It can only be a directory, which cannot be
    // linked.
    BH_WASI_TRY(OpenBeneath(dir_.borrow(), from, O_PATH | O_DIRECTORY));
    return Refuse(Errno::kPerm);
  }
  const EntryName destination =
      BH_WASI_TRY(EntryName::Resolve(other->dir_.borrow(), to, Errno::kExist));
  return Done(linkat(source.parent().get(), source.name(), destination.parent().get(),
                     destination.name(), 0));
}

Answer<std::uint32_t> HostDirectory::ReadEntries(std::span<std::uint8_t> out,
                                                 std::uint64_t cookie) {
  if (cookie > std::numeric_limits<off_t>::max()) {
    return Refuse(Errno::kInval);
  }
  const std::lock_guard lock(listing_mutex_);
  const BorrowedFd host = BH_WASI_TRY(Listing());
  // Cookies are the file system's own positions: they stay valid for as long as it says, over any
  // other change.
  if (lseek(host.get(), static_cast<off_t>(cookie), SEEK_SET) < 0) {
    return RefuseHost();
  }
  // The guest's entries are about as large as the kernel's, so asking for much more than fits is
  // waste.
  constexpr std::size_t kBlockBytesMin = 1024;
  constexpr std::size_t kBlockBytesMax = 32768;
  alignas(dirent64) std::array<std::uint8_t, kBlockBytesMax> block;
  const std::size_t block_bytes = std::clamp(out.size(), kBlockBytesMin, block.size());
  DirectoryListing listing(out);
  while (!listing.full()) {
    const ssize_t got = getdents64(host.get(), block.data(), block_bytes);
    if (got < 0) {
      return RefuseHost();
    }
    if (got == 0) {
      break;
    }
    AddEntries(std::span(block).first(static_cast<std::size_t>(got)), listing);
  }
  return listing.used_bytes();
}

Answer<void> HostDirectory::RequireWritable() const {
  if (!writable_) {
    return Refuse(Errno::kRofs);
  }
  return {};
}

Answer<BorrowedFd> HostDirectory::Listing() {
  if (!listing_.valid()) {
    listing_ = BH_WASI_TRY(OpenBeneath(dir_.borrow(), ".", O_RDONLY | O_DIRECTORY));
  }
  return listing_.borrow();
}

}  // namespace bulkhead::wasi
