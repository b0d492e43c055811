#include "wasi/call.h"

#include <sys/stat.h>

#include <limits>

#include "wasi/path.h"

namespace bulkhead::wasi {
namespace {

timespec ParseTime(std::uint64_t nanoseconds, bool given, bool now) {
  constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
  timespec time{};
  if (now) {
    time.tv_nsec = UTIME_NOW;
  } else if (!given) {
    time.tv_nsec = UTIME_OMIT;
  } else {
    time.tv_sec = static_cast<time_t>(nanoseconds / kNanosecondsPerSecond);
    time.tv_nsec = static_cast<long>(nanoseconds % kNanosecondsPerSecond);
  }
  return time;
}

}  // namespace

Answer<void> GuestBuffers::Read(const GuestMemory& memory, std::uint32_t address,
                                std::uint32_t parts) {
  if (parts > kPartsMax) {
    return Refuse(Errno::kInval);
  }
  const auto list = memory.Span(address, std::uint64_t{parts} * sizeof(GuestIovec));
  if (!list) {
    return Refuse(Errno::kFault);
  }
  std::uint64_t total = 0;
  for (count_ = 0; count_ < parts; ++count_) {
    GuestIovec part;
    std::memcpy(&part, list->data() + count_ * sizeof part, sizeof part);
    const auto span = memory.Span(part.address, part.bytes);
    if (!span) {
      return Refuse(Errno::kFault);
    }
    parts_[count_] = {span->data(), span->size()};
    total += part.bytes;
  }
  if (total > std::numeric_limits<std::uint32_t>::max()) {
    return Refuse(Errno::kInval);
  }
  bytes_ = static_cast<std::uint32_t>(total);
  return {};
}

IoRequest GuestBuffers::Request(BorrowedFd stop) const {
  IoRequest request;
  request.buffers = std::span(parts_).first(count_);
  request.bytes = bytes_;
  request.stop = stop;
  return request;
}

Answer<std::span<std::uint8_t>> Call::Span(std::size_t i, std::uint64_t bytes) const {
  const auto span = memory_.Span(U32(i), bytes);
  if (!span) {
    return Refuse(Errno::kFault);
  }
  return *span;
}

Answer<std::string> Call::Path(std::size_t i) const {
  const std::uint32_t bytes = U32(i + 1);
  const std::span<std::uint8_t> span = BH_WASI_TRY(Span(i, bytes));
  if (bytes > kPathBytesMax) {
    return Refuse(Errno::kNametoolong);
  }
  std::string path(span.begin(), span.end());
  BH_WASI_TRY(CheckPath(path));
  return path;
}

Answer<bool> Call::FollowFlag(std::size_t i) const {
  if ((U32(i) & ~kLookupSymlinkFollow) != 0) {
    return Refuse(Errno::kInval);
  }
  return U32(i) == kLookupSymlinkFollow;
}

Answer<TableEntry> Call::Entry(std::size_t i, Rights needed) const {
  return wasi_.descriptors().Find(U32(i), needed);
}

Answer<std::shared_ptr<Descriptor>> Call::Find(std::size_t i, Rights needed) const {
  return BH_WASI_TRY(Entry(i, needed)).descriptor;
}

Answer<DirectoryEntry> Call::FindDirectory(std::size_t i, Rights needed) const {
  TableEntry entry = BH_WASI_TRY(Entry(i, needed));
  Directory* directory = entry.descriptor->AsDirectory();
  if (directory == nullptr) {
    return Refuse(Errno::kNotdir);
  }
  return DirectoryEntry{std::move(entry.descriptor), directory, entry.inheriting};
}

Answer<FileTimes> ParseTimes(const TimesArguments& arguments) {
  const auto has = [&](std::uint16_t flag) { return (arguments.flags & flag) != 0; };
  if ((arguments.flags & ~std::uint32_t{fstflags::kAll}) != 0 ||
      (has(fstflags::kAtim) && has(fstflags::kAtimNow)) ||
      (has(fstflags::kMtim) && has(fstflags::kMtimNow))) {
    return Refuse(Errno::kInval);
  }
  FileTimes times;
  times.access = ParseTime(arguments.access_ns, has(fstflags::kAtim), has(fstflags::kAtimNow));
  times.modification =
      ParseTime(arguments.modification_ns, has(fstflags::kMtim), has(fstflags::kMtimNow));
  return times;
}

}  // namespace bulkhead::wasi
