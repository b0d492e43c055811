// Looking into and removing directories through handles, never through paths. No symbolic link is
// followed and no other file system is entered. Stateless; any thread.
#pragma once

#include <bulkhead/result.h>

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace bulkhead::staging {

// One name in a directory that is held open.
struct EntryAt {
  BorrowedFd directory;
  std::string name;
};

bool SameObject(const struct stat& a, const struct stat& b);

struct Listing {
  std::vector<std::string> names;
  bool complete = true;  // false: the directory holds more entries than were looked at
};

// The names that start with `prefix` among the first `scanned_max` entries, without "." and "..".
Result<Listing> ListNames(BorrowedFd directory, std::string_view prefix, std::size_t scanned_max);

// A staging directory holds one file. The bounds are far above what another program may drop there
// in good faith, and keep the work finite when somebody keeps adding.
inline constexpr int kRemovalDepthMax = 16;
inline constexpr std::size_t kRemovalEntriesMax = 4096;

// Removes everything inside `directory`. What was removed before a failure stays removed.
Status RemoveContents(BorrowedFd directory);

// Removes the empty directory held as `directory` from its place `entry`. Success if it is already
// gone; a failure, with nothing touched, if something else has taken its place.
Status RemoveEmptyDirectory(const EntryAt& entry, BorrowedFd directory);

}  // namespace bulkhead::staging
