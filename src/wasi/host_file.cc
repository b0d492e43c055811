#include "wasi/host_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <limits>

#include "wasi/host_stat.h"
#include "wasi/wait.h"

namespace bulkhead::wasi {
namespace {

constexpr std::uint64_t kOffsetMax = std::numeric_limits<off_t>::max();

constexpr Rights kChangesContent =
    rights::kFdWrite | rights::kFdAllocate | rights::kFdFilestatSetSize;

// Repeats `transfer` until it does something other than ask for patience.
template <class Transfer>
Answer<std::uint32_t> TransferWhenReady(pollfd wanted, BorrowedFd stop, bool nonblocking,
                                        Transfer transfer) {
  while (true) {
    const ssize_t bytes = transfer();
    if (bytes >= 0) {
      return static_cast<std::uint32_t>(bytes);  // at most the request's bytes
    }
    if (errno == EAGAIN && !nonblocking) {
      BH_WASI_TRY(WaitReady(BorrowedFd(wanted.fd), wanted.events, stop));
    } else if (errno != EINTR) {
      return RefuseHost();
    }
  }
}

}  // namespace

Rights HostFile::applicable_rights() const {
  return options_.opened_for_write ? rights::kFile : rights::kFile & ~kChangesContent;
}

Errno HostFile::InapplicableError(Rights missing) const {
  return (missing & rights::kDirectoryOnly) != 0 ? Errno::kNotdir : Errno::kNotcapable;
}

Answer<void> HostFile::SetFlags(std::uint16_t flags) {
  constexpr std::uint16_t kSettable = fdflags::kAppend | fdflags::kNonblock;
  if (((flags ^ flags_) & ~kSettable) != 0) {
    return Refuse(Errno::kNotsup);  // the kernel cannot change the synchronous ones either
  }
  const int host = fcntl(fd_.get(), F_GETFL);
  if (host < 0) {
    return RefuseHost();
  }
  const int append = (flags & fdflags::kAppend) != 0 ? O_APPEND : 0;
  if (fcntl(fd_.get(), F_SETFL, (host & ~O_APPEND) | append) != 0) {
    return RefuseHost();
  }
  flags_ = flags;
  return {};
}

Answer<std::uint32_t> HostFile::Read(const IoRequest& request) {
  const auto count = static_cast<int>(request.buffers.size());
  if (request.offset.value_or(0) > kOffsetMax) {
    return Refuse(Errno::kInval);
  }
  return TransferWhenReady(
      {fd_.get(), POLLIN, 0}, request.stop, (flags_ & fdflags::kNonblock) != 0, [&] {
        return request.offset ? preadv(fd_.get(), request.buffers.data(), count,
                                       static_cast<off_t>(*request.offset))
                              : readv(fd_.get(), request.buffers.data(), count);
      });
}

Answer<std::uint32_t> HostFile::Write(const IoRequest& request) {
  const auto count = static_cast<int>(request.buffers.size());
  if (request.offset.value_or(0) > kOffsetMax) {
    return Refuse(Errno::kFbig);
  }
  return TransferWhenReady(
      {fd_.get(), POLLOUT, 0}, request.stop, (flags_ & fdflags::kNonblock) != 0, [&] {
        return request.offset ? pwritev(fd_.get(), request.buffers.data(), count,
                                        static_cast<off_t>(*request.offset))
                              : writev(fd_.get(), request.buffers.data(), count);
      });
}

Answer<std::uint64_t> HostFile::Seek(std::int64_t offset, std::uint8_t whence) {
  constexpr std::array kHostWhence = {SEEK_SET, SEEK_CUR, SEEK_END};
  if (whence >= kHostWhence.size()) {
    return Refuse(Errno::kInval);
  }
  const off_t position = lseek(fd_.get(), offset, kHostWhence[whence]);
  if (position < 0) {
    return RefuseHost();
  }
  return static_cast<std::uint64_t>(position);
}

Answer<void> HostFile::Sync(bool data_only) {
  if ((data_only ? fdatasync(fd_.get()) : fsync(fd_.get())) != 0) {
    return RefuseHost();
  }
  return {};
}

Answer<void> HostFile::Advise(FileRange range, std::uint8_t advice) {
  constexpr std::array kHostAdvice = {POSIX_FADV_NORMAL,   POSIX_FADV_SEQUENTIAL,
                                      POSIX_FADV_RANDOM,   POSIX_FADV_WILLNEED,
                                      POSIX_FADV_DONTNEED, POSIX_FADV_NOREUSE};
  if (advice >= kHostAdvice.size() || range.offset > kOffsetMax || range.bytes > kOffsetMax) {
    return Refuse(Errno::kInval);
  }
  const int error = posix_fadvise(fd_.get(), static_cast<off_t>(range.offset),
                                  static_cast<off_t>(range.bytes), kHostAdvice[advice]);
  if (error != 0) {
    return Refuse(FromHost(error));
  }
  return {};
}

// fallocate(2) itself: the C library's posix_fallocate would write zeros where the file system
// cannot do it.
Answer<void> HostFile::Allocate(FileRange range) {
  if (range.offset > kOffsetMax || range.bytes > kOffsetMax) {
    return Refuse(Errno::kFbig);
  }
  while (fallocate(fd_.get(), 0, static_cast<off_t>(range.offset),
                   static_cast<off_t>(range.bytes)) != 0) {
    if (errno != EINTR) {
      return RefuseHost();
    }
  }
  return {};
}

Answer<Filestat> HostFile::Stat() {
  return ToFilestat(BH_WASI_TRY(StatHost(fd_.borrow())));
}

Answer<void> HostFile::SetSize(std::uint64_t bytes) {
  if (bytes > kOffsetMax) {
    return Refuse(Errno::kFbig);
  }
  while (ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) {
      return RefuseHost();
    }
  }
  return {};
}

Answer<void> HostFile::SetTimes(const FileTimes& times) {
  if (!options_.writable_grant) {
    return Refuse(Errno::kRofs);
  }
  return SetHostTimes(fd_.borrow(), times);
}

std::uint64_t HostFile::BytesReadable() {
  if (options_.type != FileType::kRegularFile) {
    return 1;
  }
  const Answer<struct stat> stat = StatHost(fd_.borrow());
  const off_t position = lseek(fd_.get(), 0, SEEK_CUR);
  return stat && position >= 0 && stat->st_size > position
             ? static_cast<std::uint64_t>(stat->st_size - position)
             : 0;
}

}  // namespace bulkhead::wasi
