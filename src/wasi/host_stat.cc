#include "wasi/host_stat.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "wasi/guest_clock.h"

namespace bulkhead::wasi {

FileType FileTypeOfMode(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return FileType::kDirectory;
    case S_IFREG:
      return FileType::kRegularFile;
    case S_IFLNK:
      return FileType::kSymbolicLink;
    case S_IFCHR:
      return FileType::kCharacterDevice;
    case S_IFBLK:
      return FileType::kBlockDevice;
    case S_IFSOCK:
      return FileType::kSocketStream;
    default:
      return FileType::kUnknown;
  }
}

Answer<struct stat> StatHost(BorrowedFd fd) {
  struct stat host = {};
  if (syscall(SYS_fstat, fd.get(), &host) != 0) {
    return RefuseHost();
  }
  return host;
}

Filestat ToFilestat(const struct stat& host) {
  Filestat stat;
  stat.dev = host.st_dev;
  stat.ino = host.st_ino;
  stat.filetype = FileTypeOfMode(host.st_mode);
  stat.nlink = host.st_nlink;
  stat.size = static_cast<std::uint64_t>(host.st_size);
  stat.atim_ns = ToNanoseconds(host.st_atim);
  stat.mtim_ns = ToNanoseconds(host.st_mtim);
  stat.ctim_ns = ToNanoseconds(host.st_ctim);
  return stat;
}

Answer<void> SetHostTimes(BorrowedFd fd, const FileTimes& times) {
  const std::array<timespec, 2> values = {times.access, times.modification};
  if (futimens(fd.get(), values.data()) != 0) {
    return RefuseHost();
  }
  return {};
}

}  // namespace bulkhead::wasi
