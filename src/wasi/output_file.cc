#include "wasi/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "wasi/host_stat.h"

namespace bulkhead::wasi {
namespace {

constexpr std::uint64_t kOffsetMax = std::numeric_limits<off_t>::max();
constexpr std::uint8_t kAdviceMax = 5;

std::vector<iovec> FirstBytes(std::span<const iovec> buffers, std::size_t bytes) {
  std::vector<iovec> first;
  for (const iovec& buffer : buffers) {
    const std::size_t length = std::min(buffer.iov_len, bytes);
    first.push_back({buffer.iov_base, length});
    bytes -= length;
  }
  return first;
}

}  // namespace

bool OutputFile::created() const {
  const std::lock_guard lock(mutex_);
  return created_;
}

bool OutputFile::limit_hit() const {
  const std::lock_guard lock(mutex_);
  return limit_hit_;
}

std::uint64_t OutputFile::size() const {
  const std::lock_guard lock(mutex_);
  return created_ ? HostSize().value_or(0) : 0;
}

Answer<std::uint64_t> OutputFile::Open(std::uint16_t oflags) {
  const std::lock_guard lock(mutex_);
  const bool create = (oflags & oflags::kCreat) != 0;
  if (created_) {
    if (create && (oflags & oflags::kExcl) != 0) {
      return Refuse(Errno::kExist);
    }
    if ((oflags & oflags::kTrunc) != 0) {
      BH_WASI_TRY(Truncate(0));
    }
    return generation_;
  }
  if (!create) {
    return Refuse(Errno::kNoent);
  }
  BH_WASI_TRY(Truncate(0));
  created_ = true;
  return ++generation_;
}

Answer<void> OutputFile::Unlink() {
  const std::lock_guard lock(mutex_);
  if (!created_) {
    return Refuse(Errno::kNoent);
  }
  BH_WASI_TRY(Truncate(0));
  created_ = false;
  return {};
}

Answer<Filestat> OutputFile::StatExisting() const {
  const std::lock_guard lock(mutex_);
  if (!created_) {
    return Refuse(Errno::kNoent);
  }
  return FileStat();
}

Answer<std::uint32_t> OutputFile::Read(std::uint64_t generation, std::uint64_t offset,
                                       const IoRequest& request) {
  const std::lock_guard lock(mutex_);
  BH_WASI_TRY(RequireCurrent(generation));
  if (offset > kOffsetMax) {
    return Refuse(Errno::kInval);
  }
  while (true) {
    const ssize_t got =
        preadv(grant_.file.get(), request.buffers.data(), static_cast<int>(request.buffers.size()),
               static_cast<off_t>(offset));
    if (got >= 0) {
      return static_cast<std::uint32_t>(got);
    }
    if (errno != EINTR) {
      return RefuseHost();
    }
  }
}

Answer<std::uint32_t> OutputFile::Write(std::uint64_t generation, const IoRequest& request,
                                        std::uint64_t& end) {
  const std::lock_guard lock(mutex_);
  BH_WASI_TRY(RequireCurrent(generation));
  const std::uint64_t offset = request.offset ? *request.offset : BH_WASI_TRY(HostSize());
  const std::uint64_t room = grant_.bytes_max - std::min(grant_.bytes_max, offset);
  std::vector<iovec> fitting;
  std::span<const iovec> buffers = request.buffers;
  if (request.bytes > room) {
    limit_hit_ = true;
    if (room == 0) {
      return Refuse(Errno::kFbig);
    }
    fitting = FirstBytes(buffers, room);
    buffers = fitting;
  }
  if (request.bytes == 0) {
    return 0;
  }
  while (true) {
    const ssize_t put = pwritev(grant_.file.get(), buffers.data(), static_cast<int>(buffers.size()),
                                static_cast<off_t>(offset));
    if (put >= 0) {
      end = offset + static_cast<std::uint64_t>(put);
      return static_cast<std::uint32_t>(put);
    }
    if (errno != EINTR) {
      return RefuseHost();
    }
  }
}

Answer<void> OutputFile::SetSize(std::uint64_t generation, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  BH_WASI_TRY(RequireCurrent(generation));
  if (bytes > grant_.bytes_max) {
    limit_hit_ = true;
    return Refuse(Errno::kFbig);
  }
  return Truncate(bytes);
}

Answer<void> OutputFile::Allocate(std::uint64_t generation, FileRange range) {
  const std::lock_guard lock(mutex_);
  BH_WASI_TRY(RequireCurrent(generation));
  if (range.bytes == 0) {
    return Refuse(Errno::kInval);
  }
  if (range.offset > grant_.bytes_max || range.bytes > grant_.bytes_max - range.offset) {
    limit_hit_ = true;
    return Refuse(Errno::kFbig);
  }
  while (fallocate(grant_.file.get(), 0, static_cast<off_t>(range.offset),
                   static_cast<off_t>(range.bytes)) != 0) {
    if (errno != EINTR) {
      return RefuseHost();
    }
  }
  return {};
}

Answer<Filestat> OutputFile::Stat(std::uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  BH_WASI_TRY(RequireCurrent(generation));
  return FileStat();
}

Answer<void> OutputFile::Sync(std::uint64_t generation, bool data_only) {
  const std::lock_guard lock(mutex_);
  BH_WASI_TRY(RequireCurrent(generation));
  if ((data_only ? fdatasync(grant_.file.get()) : fsync(grant_.file.get())) != 0) {
    return RefuseHost();
  }
  return {};
}

Answer<void> OutputFile::RequireCurrent(std::uint64_t generation) const {
  if (!created_ || generation != generation_) {
    return Refuse(Errno::kStale);
  }
  return {};
}

Answer<std::uint64_t> OutputFile::HostSize() const {
  return static_cast<std::uint64_t>(BH_WASI_TRY(StatHost(grant_.file.borrow())).st_size);
}

Answer<void> OutputFile::Truncate(std::uint64_t bytes) {
  while (ftruncate(grant_.file.get(), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) {
      return RefuseHost();
    }
  }
  return {};
}

// The host's numbers would tell about the staging area; size and times are the file's own.
Answer<Filestat> OutputFile::FileStat() const {
  Filestat stat = ToFilestat(BH_WASI_TRY(StatHost(grant_.file.borrow())));
  stat.dev = kDevice;
  stat.ino = kFileInode;
  stat.nlink = 1;
  return stat;
}

Rights OutputHandle::applicable_rights() const {
  constexpr Rights kChangesContent =
      rights::kFdWrite | rights::kFdAllocate | rights::kFdFilestatSetSize;
  return opened_for_write_ ? rights::kFile : rights::kFile & ~kChangesContent;
}

Errno OutputHandle::InapplicableError(Rights missing) const {
  return (missing & rights::kDirectoryOnly) != 0 ? Errno::kNotdir : Errno::kNotcapable;
}

std::uint16_t OutputHandle::flags() const {
  const std::lock_guard lock(mutex_);
  return flags_;
}

Answer<void> OutputHandle::SetFlags(std::uint16_t flags) {
  constexpr std::uint16_t kSettable = fdflags::kAppend | fdflags::kNonblock;
  const std::lock_guard lock(mutex_);
  if (((flags ^ flags_) & ~kSettable) != 0) {
    return Refuse(Errno::kNotsup);
  }
  flags_ = flags;
  return {};
}

Answer<std::uint32_t> OutputHandle::Read(const IoRequest& request) {
  if (request.offset) {
    return file_->Read(generation_, *request.offset, request);
  }
  const std::lock_guard lock(mutex_);
  const std::uint32_t bytes = BH_WASI_TRY(file_->Read(generation_, position_, request));
  position_ += bytes;
  return bytes;
}

Answer<std::uint32_t> OutputHandle::Write(const IoRequest& request) {
  std::uint64_t end = 0;
  if (request.offset) {
    return file_->Write(generation_, request, end);
  }
  const std::lock_guard lock(mutex_);
  IoRequest here = request;
  if ((flags_ & fdflags::kAppend) == 0) {
    here.offset = position_;
  }
  const std::uint32_t bytes = BH_WASI_TRY(file_->Write(generation_, here, end));
  if (bytes != 0) {
    position_ = end;
  }
  return bytes;
}

Answer<std::uint64_t> OutputHandle::Seek(std::int64_t offset, std::uint8_t whence) {
  const std::lock_guard lock(mutex_);
  std::uint64_t base = 0;
  if (whence == kWhenceCur) {
    base = position_;
  } else if (whence == kWhenceEnd) {
    base = BH_WASI_TRY(file_->Stat(generation_)).size;
  } else if (whence != kWhenceSet) {
    return Refuse(Errno::kInval);
  }
  std::int64_t position = 0;
  if (__builtin_add_overflow(static_cast<std::int64_t>(base), offset, &position)) {
    return Refuse(Errno::kOverflow);
  }
  if (position < 0) {
    return Refuse(Errno::kInval);
  }
  position_ = static_cast<std::uint64_t>(position);
  return position_;
}

Answer<void> OutputHandle::Sync(bool data_only) {
  return file_->Sync(generation_, data_only);
}

// Advice may be ignored, but not nonsense.
Answer<void> OutputHandle::Advise(FileRange range, std::uint8_t advice) {
  if (advice > kAdviceMax || range.offset > kOffsetMax || range.bytes > kOffsetMax) {
    return Refuse(Errno::kInval);
  }
  return {};
}

Answer<void> OutputHandle::Allocate(FileRange range) {
  return file_->Allocate(generation_, range);
}

Answer<Filestat> OutputHandle::Stat() {
  return file_->Stat(generation_);
}

Answer<void> OutputHandle::SetSize(std::uint64_t bytes) {
  return file_->SetSize(generation_, bytes);
}

std::uint64_t OutputHandle::BytesReadable() {
  const std::lock_guard lock(mutex_);
  const Answer<Filestat> stat = file_->Stat(generation_);
  return stat && stat->size > position_ ? stat->size - position_ : 0;
}

}  // namespace bulkhead::wasi
