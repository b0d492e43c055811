#include "staging/durable_rename.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "staging/output_error.h"

namespace bulkhead::staging {
Status RenameReplacing(const EntryAt& from, const EntryAt& to) {
  if (renameat(from.directory.get(), from.name.c_str(), to.directory.get(), to.name.c_str()) != 0) {
    return OutputFail("rename to", to.name, errno);
  }
  return {};
}

Status RenameNoReplace(const EntryAt& from, const EntryAt& to) {
  if (renameat2(from.directory.get(), from.name.c_str(), to.directory.get(), to.name.c_str(),
                RENAME_NOREPLACE) == 0) {
    return {};
  }
  // EINVAL: the file system does not know the flag; names and handles are valid.
  if (errno == EINVAL || errno == ENOSYS) {
    return LinkNoReplace(from, to);
  }
  return OutputFail("rename without replacing to", to.name, errno);
}

Status LinkNoReplace(const EntryAt& from, const EntryAt& to) {
  if (linkat(from.directory.get(), from.name.c_str(), to.directory.get(), to.name.c_str(), 0) !=
      0) {
    return OutputFail("link without replacing to", to.name, errno);
  }
  return {};
}

Status SyncFile(BorrowedFd file) {
  while (fsync(file.get()) != 0) {
    if (errno != EINTR) {
      return OutputFail("fsync the staged file", {}, errno);
    }
  }
  return {};
}

Status SyncDirectory(BorrowedFd directory) {
  const UniqueFd readable(openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable.valid()) {
    return OutputFail("open the output directory for fsync", {}, errno);
  }
  while (fsync(readable.get()) != 0) {
    if (errno != EINTR) {
      return OutputFail("fsync the output directory", {}, errno);
    }
  }
  return {};
}

}  // namespace bulkhead::staging
