#include "codecache/directory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_error.h"
#include "base/random_id.h"
#include "base/strings.h"

namespace bulkhead::codecache {
namespace {

constexpr const char* kLockName = "lock";
constexpr std::string_view kNewFilePrefix = "new-";
constexpr std::size_t kNewFileIdBytes = 8;
// A sweep may take a new file for abandoned in the instant before it is locked; not twice in a row.
constexpr int kCreateAttempts = 4;

Status MakeWithParents(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      return Fail(ErrnoError("mkdir", part, errno));
    }
    if (end == std::string::npos) {
      return {};
    }
  }
}

Status CheckOwner(BorrowedFd directory, const std::string& path) {
  struct stat status{};
  if (fstat(directory.get(), &status) != 0) {
    return Fail(ErrnoError("fstat", path, errno));
  }
  if (status.st_uid != geteuid()) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{} belongs to user {}, and code from it would be trusted; name a "
                            "directory of user {}",
                            Quoted(path), status.st_uid, geteuid()));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("others may write to {}, and code from it would be trusted: "
                            "chmod go-w {}",
                            Quoted(path), Quoted(path)));
  }
  return {};
}

Result<UniqueFd> OpenLock(BorrowedFd directory) {
  UniqueFd lock(openat(directory.get(), kLockName,
                       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
                       S_IRUSR | S_IWUSR));
  if (!lock.valid()) {
    return Fail(ErrnoError("open", kLockName, errno));
  }
  return lock;
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

Result<UniqueFd> OpenDirectory(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument, "the path of a code cache is empty or holds a NUL");
  }
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  UniqueFd directory(open(path.c_str(), kFlags));
  if (!directory.valid() && errno == ENOENT) {
    BH_TRY(MakeWithParents(path));
    directory.Reset(open(path.c_str(), kFlags));
  }
  if (!directory.valid()) {
    return Fail(ErrnoError("open", path, errno));
  }
  BH_TRY(CheckOwner(directory.borrow(), path));
  return directory;
}

Result<UniqueFd> LockForSweep(BorrowedFd directory) {
  UniqueFd lock = BH_TRY(OpenLock(directory));
  while (flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) {
      return Fail(ErrnoError("flock", kLockName, errno));
    }
  }
  return lock;
}

Result<std::optional<UniqueFd>> TryLockForSweep(BorrowedFd directory) {
  UniqueFd lock = BH_TRY(OpenLock(directory));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
    return std::optional<UniqueFd>(std::move(lock));
  }
  if (errno == EWOULDBLOCK) {
    return std::optional<UniqueFd>();
  }
  return Fail(ErrnoError("flock", kLockName, errno));
}

Result<NewFile> NewFile::Create(BorrowedFd directory) {
  for (int attempt = 0; attempt < kCreateAttempts; ++attempt) {
    std::string name = fmt::format("{}{}", kNewFilePrefix, RandomHex(kNewFileIdBytes));
    UniqueFd file(openat(directory.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                         S_IRUSR | S_IWUSR));
    if (!file.valid()) {
      return Fail(ErrnoError("create", "cache entry", errno));
    }
    NewFile created(directory, std::move(name), std::move(file));
    // Where files cannot be locked nobody takes this one for abandoned.
    const bool swept = flock(created.file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status{};
    if (!swept && fstat(created.file_.get(), &status) == 0 && status.st_nlink == 1) {
      return created;
    }
  }
  return Fail(ErrorCode::kIo, "a sweep of the cache removes every new file");
}

NewFile::~NewFile() {
  if (file_.valid() && !name_.empty()) {
    unlinkat(directory_.get(), name_.c_str(), 0);
  }
}

Status NewFile::RenameTo(const std::string& name) {
  if (renameat(directory_.get(), name_.c_str(), directory_.get(), name.c_str()) != 0) {
    return Fail(ErrnoError("rename to", name, errno));
  }
  name_.clear();
  return {};
}

bool IsNewFileName(std::string_view name) {
  return name.starts_with(kNewFilePrefix) &&
         name.size() == kNewFilePrefix.size() + 2 * kNewFileIdBytes;
}

bool RemoveIfAbandoned(BorrowedFd directory, const std::string& name) {
  const UniqueFd file(openat(directory.get(), name.c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat opened{};
  struct stat named{};
  return file.valid() && flock(file.get(), LOCK_EX | LOCK_NB) == 0 &&
         fstat(file.get(), &opened) == 0 &&
         fstatat(directory.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         SameFile(opened, named) && unlinkat(directory.get(), name.c_str(), 0) == 0;
}

}  // namespace bulkhead::codecache
