// Preloaded into a program, this has the kernel take and give less than asked for, as it may at any
// time. BH_SHORT_IO says how:
//   one          each call transfers one byte
//   split        each call transfers a part, by chance
//   interrupted  every second call is interrupted by a signal before it transfers anything
// Concerns streams, pipes and files. Datagrams cannot be had in parts, and events only as a whole.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace {

enum class Way { kNone, kOne, kSplit, kInterrupted };

Way ReadWay() {
  const char* const text = std::getenv("BH_SHORT_IO");
  const std::string_view way = text == nullptr ? "" : text;
  return way == "one"           ? Way::kOne
         : way == "split"       ? Way::kSplit
         : way == "interrupted" ? Way::kInterrupted
                                : Way::kNone;
}

const Way kWay = ReadWay();

// Not shared: threads need no lock, and each has a course of its own.
thread_local unsigned turn = 0;

bool Interrupted() {
  if (kWay == Way::kInterrupted && ++turn % 2 == 1) {
    errno = EINTR;
    return true;
  }
  return false;
}

bool Is(int fd, mode_t type) {
  struct stat status{};
  return syscall(SYS_fstat, fd, &status) == 0 && (status.st_mode & S_IFMT) == type;
}

bool MayBeParted(int fd) {
  return Is(fd, S_IFIFO) || Is(fd, S_IFREG) || Is(fd, S_IFSOCK);
}

std::size_t Part(std::size_t bytes) {
  if (bytes < 2 || kWay == Way::kNone || kWay == Way::kInterrupted) {
    return bytes;
  }
  turn = turn * 1'664'525U + 1'013'904'223U;
  return kWay == Way::kOne ? 1 : 1 + (turn >> 8) % bytes;
}

// The message with less of its only piece; that of a datagram as it is.
msghdr Shorten(const msghdr& message, iovec& piece, bool parted) {
  msghdr shorter = message;
  if (parted && message.msg_iovlen == 1) {
    piece = {message.msg_iov->iov_base, Part(message.msg_iov->iov_len)};
    shorter.msg_iov = &piece;
  }
  return shorter;
}

// A worker has one socket, a stream; asking it is more than its filter allows.
bool IsStream(int fd) {
  static const bool kMayAsk = std::getenv("BH_SHORT_IO_WORKER") == nullptr;
  int type = 0;
  socklen_t bytes = sizeof type;
  return !kMayAsk || (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
                      type == SOCK_STREAM);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the C library's names
extern "C" ssize_t read(int fd, void* buffer, std::size_t bytes) {
  if (!MayBeParted(fd)) {
    return syscall(SYS_read, fd, buffer, bytes);
  }
  return Interrupted() ? -1 : syscall(SYS_read, fd, buffer, Part(bytes));
}

extern "C" ssize_t write(int fd, const void* buffer, std::size_t bytes) {
  const bool whole = bytes <= PIPE_BUF && Is(fd, S_IFIFO);  // as POSIX promises
  if (whole || !MayBeParted(fd)) {
    return syscall(SYS_write, fd, buffer, bytes);
  }
  return Interrupted() ? -1 : syscall(SYS_write, fd, buffer, Part(bytes));
}

extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (Interrupted()) {
    return -1;
  }
  iovec piece{};
  msghdr shorter = Shorten(*message, piece, IsStream(fd));
  const ssize_t got = syscall(SYS_recvmsg, fd, &shorter, flags);
  message->msg_controllen = shorter.msg_controllen;
  message->msg_flags = shorter.msg_flags;
  return got;
}

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (Interrupted()) {
    return -1;
  }
  iovec piece{};
  const msghdr shorter = Shorten(*message, piece, IsStream(fd));
  return syscall(SYS_sendmsg, fd, &shorter, flags);
}

extern "C" int ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  timespec left{};
  if (timeout != nullptr) {
    left = *timeout;  // the call itself writes what is left of it
  }
  constexpr std::size_t kSignalSetBytes = 8;
  return Interrupted() ? -1
                       : static_cast<int>(syscall(SYS_ppoll, entries, count,
                                                  timeout == nullptr ? nullptr : &left, mask,
                                                  kSignalSetBytes));
}

extern "C" int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  return Interrupted() ? -1
                       : static_cast<int>(syscall(SYS_waitid, type, id, info, options, nullptr));
}

// NOLINTEND(readability-identifier-naming)
