#include "base/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/errno_error.h"

namespace bulkhead {
namespace {

// One page: what /proc hands out per read.
constexpr std::size_t kReadBytes = 4096;

// An interrupted opening says nothing of the file.
UniqueFd Open(BorrowedFd directory, const char* path) {
  for (;;) {
    UniqueFd file(openat(directory.get(), path, O_RDONLY | O_CLOEXEC));
    if (file.valid() || errno != EINTR) {
      return file;
    }
  }
}

}  // namespace

Result<std::string> ReadTextFile(BorrowedFd directory, const char* path) {
  const UniqueFd file = Open(directory, path);
  if (!file.valid()) {
    return Fail(ErrnoError("open", path, errno));
  }
  return ReadOpenTextFile(file.borrow(), path);
}

Result<std::string> ReadTextFile(const char* path) {
  return ReadTextFile(BorrowedFd(AT_FDCWD), path);
}

Result<std::string> ReadOpenTextFile(BorrowedFd file, std::string_view name) {
  std::string text;
  std::array<char, kReadBytes> buffer;
  for (;;) {
    const ssize_t got =
        pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return Fail(ErrnoError("read", name, errno));
    }
    if (got == 0) {
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Status WriteTextFile(BorrowedFd directory, const char* path, std::string_view text) {
  const UniqueFd file(openat(directory.get(), path, O_WRONLY | O_CLOEXEC));
  if (!file.valid()) {
    return Fail(ErrnoError("open", path, errno));
  }
  for (;;) {
    const ssize_t put = write(file.get(), text.data(), text.size());
    if (put >= 0) {
      return {};
    }
    if (errno != EINTR) {
      return Fail(ErrnoError("write", path, errno));
    }
  }
}

}  // namespace bulkhead
