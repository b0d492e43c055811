// Removes what dead processes left in a destination directory: a parent that is killed, or a
// machine that loses power, leaves its staging directory behind. Stateless; any thread.
//
// A staging directory is removed only if all of this holds:
//   - its name has exactly the form of staging_name.h, it is a directory of the calling user with
//   mode 0700 and
//     holds nothing but the staged file (so that no directory renamed into the pattern is ever
//     emptied);
//   - its lock is free: an owner holds it as long as it lives, in whatever container;
//   - its owner is dead by name: no such process for an owner of this boot and pid namespace. An
//   owner of
//     another boot counts as dead only where no other machine can reach the file system.
// Everything else stays, untouched.
#pragma once

#include "base/unique_fd.h"
#include "staging/staging_name.h"

namespace bulkhead::staging {

struct JanitorReport {
  int removed = 0;
  int left = 0;  // entries that look like staging and stayed
};

// Best effort: a failure leaves the entry and is no concern of the run that called. `directory` may
// be O_PATH.
JanitorReport RemoveStaleStaging(BorrowedFd directory, const OwnerIdentity& self);

enum class LockState : std::uint8_t { kTaken, kHeldElsewhere, kUnsupported };

// Takes, without waiting, the lock that says "the owner of this staging directory lives". It
// belongs to the open file description and ends with it.
LockState TakeOwnerLock(BorrowedFd staging_directory);

// True for file systems that only this machine can have mounted.
bool IsLocalFileSystem(BorrowedFd directory);

}  // namespace bulkhead::staging
