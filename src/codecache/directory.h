// The directory of a cache and its lock. Everything goes through the descriptor opened once: the
// path is followed once.
#pragma once

#include <bulkhead/result.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace bulkhead::codecache {

// Made with its parents if it is absent (mode 0700). kUnsupported unless it is a directory of this
// user's that nobody else may write to.
Result<UniqueFd> OpenDirectory(const std::string& path);

// The right to remove entries for want of room, one holder at a time over all processes; held while
// the descriptor is open. Finding and storing need no lock.
Result<UniqueFd> LockForSweep(BorrowedFd directory);
// nullopt if somebody else holds it.
Result<std::optional<UniqueFd>> TryLockForSweep(BorrowedFd directory);

// A file on its way to become an entry. Its lock tells others that its writer lives; unless it was
// renamed, the destructor removes it.
class NewFile {
 public:
  static Result<NewFile> Create(BorrowedFd directory);
  NewFile(NewFile&&) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  BorrowedFd file() const { return file_.borrow(); }

  // Takes the place of whatever has the name.
  Status RenameTo(const std::string& name);

 private:
  NewFile(BorrowedFd directory, std::string name, UniqueFd file)
      : directory_(directory), name_(std::move(name)), file_(std::move(file)) {}

  BorrowedFd directory_;
  std::string name_;
  UniqueFd file_;
};

// Is it the name of a NewFile?
bool IsNewFileName(std::string_view name);
// Removes a NewFile whose writer is gone; false if it lives, or if that cannot be told.
bool RemoveIfAbandoned(BorrowedFd directory, const std::string& name);

}  // namespace bulkhead::codecache
