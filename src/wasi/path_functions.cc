// Calls on paths, each relative to a directory the guest already holds.
#include <algorithm>
#include <cstring>

#include "wasi/functions.h"

namespace bulkhead::wasi {
namespace {

struct OpenArguments {
  OpenRequest request;
  Rights base = 0;
  Rights inheriting = 0;
};

Answer<OpenArguments> ParseOpen(const Call& call) {
  OpenArguments arguments;
  OpenRequest& request = arguments.request;
  const std::uint32_t open_flags = call.U32(4);
  const std::uint32_t descriptor_flags = call.U32(7);
  if ((open_flags & ~std::uint32_t{oflags::kAll}) != 0 ||
      (descriptor_flags & ~std::uint32_t{fdflags::kAll}) != 0) {
    return Refuse(Errno::kInval);
  }
  request.oflags = static_cast<std::uint16_t>(open_flags);
  request.fdflags = static_cast<std::uint16_t>(descriptor_flags);
  if ((request.oflags & oflags::kCreat) != 0 && (request.oflags & oflags::kDirectory) != 0) {
    return Refuse(Errno::kInval);  // kernels disagree about what that creates
  }
  request.follow = BH_WASI_TRY(call.FollowFlag(1));
  request.path = BH_WASI_TRY(call.Path(2));
  arguments.base = call.U64(5) & rights::kAll;
  arguments.inheriting = call.U64(6) & rights::kAll;
  if ((arguments.base & rights::kFdSeek) != 0) {
    arguments.base |= rights::kFdTell;  // seeking by nothing tells the position
  }
  request.write = (arguments.base & rights::kFdWrite) != 0;
  request.read = !request.write || (arguments.base & (rights::kFdRead | rights::kFdReaddir)) != 0;
  return arguments;
}

Rights NeededToOpen(const OpenRequest& request) {
  Rights needed = rights::kPathOpen;
  if ((request.oflags & oflags::kCreat) != 0) {
    needed |= rights::kPathCreateFile;
  }
  if ((request.oflags & oflags::kTrunc) != 0) {
    needed |= rights::kPathFilestatSetSize;
  }
  return needed;
}

// What the directory must be able to pass on for this open.
Rights NeededToInherit(const OpenArguments& arguments, Rights granted_inheriting) {
  Rights needed = (arguments.base | arguments.inheriting);
  if ((granted_inheriting & rights::kFdSeek) != 0) {
    needed &= ~rights::kFdTell;
  }
  if ((arguments.request.fdflags & (fdflags::kSync | fdflags::kRsync)) != 0) {
    needed |= rights::kFdSync;
  }
  if ((arguments.request.fdflags & fdflags::kDsync) != 0 &&
      (granted_inheriting & rights::kFdSync) == 0) {
    needed |= rights::kFdDatasync;
  }
  return needed;
}

using PathOperation = Answer<void> (Directory::*)(const std::string&);

Answer<void> DoOnPath(Call& call, Rights needed, PathOperation operation) {
  const std::string path = BH_WASI_TRY(call.Path(1));
  const DirectoryEntry entry = BH_WASI_TRY(call.FindDirectory(0, needed));
  return (entry.directory->*operation)(path);
}

}  // namespace

Answer<void> PathOpen(Call& call) {
  BH_WASI_TRY(call.CheckOut<std::uint32_t>(8));
  const OpenArguments arguments = BH_WASI_TRY(ParseOpen(call));
  const DirectoryEntry entry = BH_WASI_TRY(call.FindDirectory(0, NeededToOpen(arguments.request)));
  if ((NeededToInherit(arguments, entry.inheriting) & ~entry.inheriting) != 0) {
    return Refuse(Errno::kNotcapable);
  }
  auto reservation = BH_WASI_TRY(call.wasi().descriptors().Reserve());
  std::shared_ptr<Descriptor> opened = BH_WASI_TRY(entry.directory->Open(arguments.request));
  const Rights base = arguments.base & opened->applicable_rights();
  const std::uint32_t fd = reservation.fd();
  reservation.Fill({std::move(opened), base, arguments.inheriting});
  return call.Put(8, fd);
}

Answer<void> PathCreateDirectory(Call& call) {
  return DoOnPath(call, rights::kPathCreateDirectory, &Directory::CreateDirectory);
}

Answer<void> PathRemoveDirectory(Call& call) {
  return DoOnPath(call, rights::kPathRemoveDirectory, &Directory::RemoveDirectory);
}

Answer<void> PathUnlinkFile(Call& call) {
  return DoOnPath(call, rights::kPathUnlinkFile, &Directory::Unlink);
}

Answer<void> PathFilestatGet(Call& call) {
  BH_WASI_TRY(call.CheckOut<Filestat>(4));
  const bool follow = BH_WASI_TRY(call.FollowFlag(1));
  const std::string path = BH_WASI_TRY(call.Path(2));
  const DirectoryEntry entry = BH_WASI_TRY(call.FindDirectory(0, rights::kPathFilestatGet));
  return call.Put(4, BH_WASI_TRY(entry.directory->StatPath(path, follow)));
}

Answer<void> PathFilestatSetTimes(Call& call) {
  const bool follow = BH_WASI_TRY(call.FollowFlag(1));
  const std::string path = BH_WASI_TRY(call.Path(2));
  const FileTimes times = BH_WASI_TRY(ParseTimes({call.U64(4), call.U64(5), call.U32(6)}));
  const DirectoryEntry entry = BH_WASI_TRY(call.FindDirectory(0, rights::kPathFilestatSetTimes));
  return entry.directory->SetPathTimes(path, follow, times);
}

// Following the link is refused as the reference implementations do: the kernel would follow it
// anywhere.
Answer<void> PathLink(Call& call) {
  if (BH_WASI_TRY(call.FollowFlag(1))) {
    return Refuse(Errno::kInval);
  }
  const std::string from = BH_WASI_TRY(call.Path(2));
  const std::string to = BH_WASI_TRY(call.Path(5));
  const DirectoryEntry source = BH_WASI_TRY(call.FindDirectory(0, rights::kPathLinkSource));
  const DirectoryEntry target = BH_WASI_TRY(call.FindDirectory(4, rights::kPathLinkTarget));
  return source.directory->Link(from, *target.directory, to);
}

Answer<void> PathRename(Call& call) {
  const std::string from = BH_WASI_TRY(call.Path(1));
  const std::string to = BH_WASI_TRY(call.Path(4));
  const DirectoryEntry source = BH_WASI_TRY(call.FindDirectory(0, rights::kPathRenameSource));
  const DirectoryEntry target = BH_WASI_TRY(call.FindDirectory(3, rights::kPathRenameTarget));
  return source.directory->Rename(from, *target.directory, to);
}

// The text obeys the rules of a path: an absolute link would mean nothing beneath a directory, and
// something dangerous to whoever looks at it later. A relative one may point anywhere, since nobody
// follows it out of the directory.
Answer<void> PathSymlink(Call& call) {
  const std::string text = BH_WASI_TRY(call.Path(0));
  const std::string path = BH_WASI_TRY(call.Path(3));
  const DirectoryEntry entry = BH_WASI_TRY(call.FindDirectory(2, rights::kPathSymlink));
  return entry.directory->Symlink(text, path);
}

Answer<void> PathReadlink(Call& call) {
  BH_WASI_TRY(call.CheckOut<std::uint32_t>(5));
  const std::span<std::uint8_t> out = BH_WASI_TRY(call.Span(3, call.U32(4)));
  const std::string path = BH_WASI_TRY(call.Path(1));
  const DirectoryEntry entry = BH_WASI_TRY(call.FindDirectory(0, rights::kPathReadlink));
  const std::string text = BH_WASI_TRY(entry.directory->ReadLink(path));
  const std::size_t bytes = std::min(text.size(), out.size());
  std::copy_n(text.begin(), bytes, out.begin());
  return call.Put(5, static_cast<std::uint32_t>(bytes));
}

}  // namespace bulkhead::wasi
