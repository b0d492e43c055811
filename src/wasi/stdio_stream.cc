#include "wasi/stdio_stream.h"

#include <poll.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "wasi/wait.h"

namespace bulkhead::wasi {
namespace {

// The part of `buffers` from byte `skip` on, at most `bytes` long.
std::vector<iovec> Slice(std::span<const iovec> buffers, std::size_t skip, std::size_t bytes) {
  std::vector<iovec> slice;
  slice.reserve(buffers.size());
  for (const iovec& buffer : buffers) {
    const std::size_t skipped = std::min(skip, buffer.iov_len);
    skip -= skipped;
    const std::size_t length = std::min(buffer.iov_len - skipped, bytes);
    bytes -= length;
    if (length != 0) {
      slice.push_back({static_cast<std::uint8_t*>(buffer.iov_base) + skipped, length});
    }
  }
  return slice;
}

}  // namespace

Rights StdioStream::applicable_rights() const {
  return rights::kFdFdstatSetFlags | rights::kFdSync | rights::kFdDatasync |
         rights::kFdFilestatGet | rights::kPollFdReadwrite |
         (direction_ == Direction::kInput ? rights::kFdRead : rights::kFdWrite);
}

Errno StdioStream::InapplicableError(Rights missing) const {
  if ((missing & rights::kDirectoryOnly) != 0) {
    return Errno::kNotdir;
  }
  const Rights positional =
      rights::kFdSeek | rights::kFdTell | rights::kFdAdvise | rights::kFdAllocate;
  return (missing & positional) != 0 ? Errno::kSpipe : Errno::kNotcapable;
}

Answer<void> StdioStream::SetFlags(std::uint16_t flags) {
  constexpr std::uint16_t kSettable = fdflags::kNonblock | fdflags::kAppend;
  if ((flags & ~kSettable) != 0) {
    return Refuse(Errno::kNotsup);
  }
  flags_ = flags;
  return {};
}

Answer<std::uint32_t> StdioStream::Read(const IoRequest& request) {
  if (!fd_.valid() || request.bytes == 0) {
    return 0;
  }
  const bool blocking = !nonblocking();
  std::unique_lock turn(turn_, std::defer_lock);
  if (blocking) {
    turn.lock();
  } else if (!turn.try_lock()) {
    return Refuse(Errno::kAgain);
  }
  while (true) {
    // Never read without asking first: the description may be shared and in blocking mode.
    if (blocking) {
      BH_WASI_TRY(WaitReady(fd_.borrow(), POLLIN, request.stop));
    } else if (!BH_WASI_TRY(IsReady(fd_.borrow(), POLLIN))) {
      return Refuse(Errno::kAgain);
    }
    const ssize_t got =
        readv(fd_.get(), request.buffers.data(), static_cast<int>(request.buffers.size()));
    if (got >= 0) {
      return static_cast<std::uint32_t>(got);
    }
    if (errno != EINTR && (errno != EAGAIN || !blocking)) {
      return RefuseHost();
    }
  }
}

Answer<std::uint32_t> StdioStream::Write(const IoRequest& request) {
  const std::lock_guard turn(turn_);
  const std::uint64_t room = bytes_max_ == 0 ? std::numeric_limits<std::uint64_t>::max()
                                             : bytes_max_ - std::min(bytes_max_, bytes_.load());
  const auto allowed = static_cast<std::uint32_t>(std::min<std::uint64_t>(request.bytes, room));
  const std::uint32_t written = BH_WASI_TRY(WriteFirst(allowed, request));
  if (written == allowed && allowed < request.bytes) {
    limit_hit_ = true;
    return EndGuest(Control::kStdoutLimit);
  }
  return written;
}

// Everything asked for, unless the guest wants a non-blocking stream.
Answer<std::uint32_t> StdioStream::WriteFirst(std::uint32_t bytes, const IoRequest& request) {
  if (!fd_.valid()) {
    bytes_ += bytes;
    return bytes;
  }
  std::vector<iovec> slice;  // only for what the caller's buffers do not describe already
  std::span<const iovec> rest = request.buffers;
  if (bytes < request.bytes) {
    slice = Slice(rest, 0, bytes);
    rest = slice;
  }
  std::uint32_t written = 0;
  while (written < bytes) {
    const ssize_t put = writev(fd_.get(), rest.data(), static_cast<int>(rest.size()));
    if (put >= 0) {
      written += static_cast<std::uint32_t>(put);
      bytes_ += static_cast<std::uint64_t>(put);
      slice = Slice(rest, static_cast<std::size_t>(put), bytes - written);
      rest = slice;
    } else if (errno == EPIPE) {
      reader_gone_ = true;
      return Refuse(Errno::kPipe);
    } else if (errno == EAGAIN) {
      if (nonblocking()) {
        return written > 0 ? Answer<std::uint32_t>(written) : Refuse(Errno::kAgain);
      }
      BH_WASI_TRY(WaitReady(fd_.borrow(), POLLOUT, request.stop));
    } else if (errno != EINTR) {
      return RefuseHost();
    }
  }
  return written;
}

// The host's numbers say nothing to the guest and would tell it about the host.
Answer<Filestat> StdioStream::Stat() {
  Filestat stat;
  stat.nlink = 1;
  return stat;
}

}  // namespace bulkhead::wasi
