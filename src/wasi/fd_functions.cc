// Calls on descriptors that are open already.
#include <cstring>
#include <limits>
#include <optional>

#include "wasi/functions.h"

namespace bulkhead::wasi {
namespace {

using Transfer = Answer<std::uint32_t> (Descriptor::*)(const IoRequest&);

struct TransferArguments {
  Rights needed = 0;
  std::optional<std::uint64_t> offset;
  std::size_t count_argument = 0;  // where the number of bytes goes
};

Answer<void> DoTransfer(Call& call, Transfer transfer, const TransferArguments& arguments) {
  BH_WASI_TRY(call.CheckOut<std::uint32_t>(arguments.count_argument));
  const std::shared_ptr<Descriptor> descriptor = BH_WASI_TRY(call.Find(0, arguments.needed));
  GuestBuffers buffers;
  BH_WASI_TRY(buffers.Read(call.memory(), call.U32(1), call.U32(2)));
  IoRequest request = buffers.Request(call.wasi().stop_event());
  request.offset = arguments.offset;
  const std::uint32_t bytes = BH_WASI_TRY((descriptor.get()->*transfer)(request));
  return call.Put(arguments.count_argument, bytes);
}

// The guest's name for a preopened directory.
Answer<std::string> PreopenPath(Call& call) {
  const std::shared_ptr<Descriptor> descriptor = BH_WASI_TRY(call.Find(0, 0));
  const Directory* directory = descriptor->AsDirectory();
  if (directory != nullptr) {
    if (const std::optional<std::string>& path = directory->preopen_path()) {
      return *path;
    }
  }
  return Refuse(Errno::kBadf);  // where the C library's search for preopens ends
}

}  // namespace

Answer<void> FdRead(Call& call) {
  return DoTransfer(call, &Descriptor::Read, {rights::kFdRead, std::nullopt, 3});
}

Answer<void> FdWrite(Call& call) {
  return DoTransfer(call, &Descriptor::Write, {rights::kFdWrite, std::nullopt, 3});
}

Answer<void> FdPread(Call& call) {
  return DoTransfer(call, &Descriptor::Read, {rights::kFdRead | rights::kFdSeek, call.U64(3), 4});
}

Answer<void> FdPwrite(Call& call) {
  return DoTransfer(call, &Descriptor::Write, {rights::kFdWrite | rights::kFdSeek, call.U64(3), 4});
}

Answer<void> FdSeek(Call& call) {
  BH_WASI_TRY(call.CheckOut<std::uint64_t>(3));
  const std::uint32_t whence = call.U32(2);
  if (whence > kWhenceEnd) {
    return Refuse(Errno::kInval);
  }
  const bool tells = whence == kWhenceCur && call.I64(1) == 0;
  const auto descriptor = BH_WASI_TRY(call.Find(0, tells ? rights::kFdTell : rights::kFdSeek));
  return call.Put(3, BH_WASI_TRY(descriptor->Seek(call.I64(1), static_cast<std::uint8_t>(whence))));
}

Answer<void> FdTell(Call& call) {
  BH_WASI_TRY(call.CheckOut<std::uint64_t>(1));
  const auto descriptor = BH_WASI_TRY(call.Find(0, rights::kFdTell));
  return call.Put(1, BH_WASI_TRY(descriptor->Seek(0, kWhenceCur)));
}

Answer<void> FdClose(Call& call) {
  return call.wasi().descriptors().Close(call.U32(0));
}

Answer<void> FdRenumber(Call& call) {
  return call.wasi().descriptors().Renumber(call.U32(0), call.U32(1));
}

Answer<void> FdSync(Call& call) {
  return BH_WASI_TRY(call.Find(0, rights::kFdSync))->Sync(false);
}

Answer<void> FdDatasync(Call& call) {
  return BH_WASI_TRY(call.Find(0, rights::kFdDatasync))->Sync(true);
}

Answer<void> FdAdvise(Call& call) {
  const auto descriptor = BH_WASI_TRY(call.Find(0, rights::kFdAdvise));
  if (call.U32(3) > std::numeric_limits<std::uint8_t>::max()) {
    return Refuse(Errno::kInval);
  }
  return descriptor->Advise({call.U64(1), call.U64(2)}, static_cast<std::uint8_t>(call.U32(3)));
}

Answer<void> FdAllocate(Call& call) {
  return BH_WASI_TRY(call.Find(0, rights::kFdAllocate))->Allocate({call.U64(1), call.U64(2)});
}

Answer<void> FdFdstatGet(Call& call) {
  BH_WASI_TRY(call.CheckOut<Fdstat>(1));
  const TableEntry entry = BH_WASI_TRY(call.Entry(0, 0));
  Fdstat stat;
  stat.filetype = entry.descriptor->file_type();
  stat.flags = entry.descriptor->flags();
  stat.rights_base = entry.base;
  stat.rights_inheriting = entry.inheriting;
  return call.Put(1, stat);
}

Answer<void> FdFdstatSetFlags(Call& call) {
  const auto descriptor = BH_WASI_TRY(call.Find(0, rights::kFdFdstatSetFlags));
  if ((call.U32(1) & ~std::uint32_t{fdflags::kAll}) != 0) {
    return Refuse(Errno::kInval);
  }
  return descriptor->SetFlags(static_cast<std::uint16_t>(call.U32(1)));
}

Answer<void> FdFdstatSetRights(Call& call) {
  return call.wasi().descriptors().NarrowRights(call.U32(0), call.U64(1), call.U64(2));
}

Answer<void> FdFilestatGet(Call& call) {
  BH_WASI_TRY(call.CheckOut<Filestat>(1));
  const auto descriptor = BH_WASI_TRY(call.Find(0, rights::kFdFilestatGet));
  return call.Put(1, BH_WASI_TRY(descriptor->Stat()));
}

Answer<void> FdFilestatSetSize(Call& call) {
  return BH_WASI_TRY(call.Find(0, rights::kFdFilestatSetSize))->SetSize(call.U64(1));
}

Answer<void> FdFilestatSetTimes(Call& call) {
  const auto descriptor = BH_WASI_TRY(call.Find(0, rights::kFdFilestatSetTimes));
  return descriptor->SetTimes(BH_WASI_TRY(ParseTimes({call.U64(1), call.U64(2), call.U32(3)})));
}

Answer<void> FdPrestatGet(Call& call) {
  BH_WASI_TRY(call.CheckOut<Prestat>(1));
  const std::string path = BH_WASI_TRY(PreopenPath(call));
  Prestat stat;
  stat.name_bytes = static_cast<std::uint32_t>(path.size());
  return call.Put(1, stat);
}

Answer<void> FdPrestatDirName(Call& call) {
  const std::span<std::uint8_t> out = BH_WASI_TRY(call.Span(1, call.U32(2)));
  const std::string path = BH_WASI_TRY(PreopenPath(call));
  if (out.size() < path.size()) {
    return Refuse(Errno::kNametoolong);
  }
  std::memcpy(out.data(), path.data(), path.size());
  return {};
}

Answer<void> FdReaddir(Call& call) {
  BH_WASI_TRY(call.CheckOut<std::uint32_t>(4));
  const std::span<std::uint8_t> out = BH_WASI_TRY(call.Span(1, call.U32(2)));
  const DirectoryEntry entry = BH_WASI_TRY(call.FindDirectory(0, rights::kFdReaddir));
  return call.Put(4, BH_WASI_TRY(entry.directory->ReadEntries(out, call.U64(3))));
}

}  // namespace bulkhead::wasi
