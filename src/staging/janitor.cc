#include "staging/janitor.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "base/proc_stat.h"
#include "staging/proc_facts.h"
#include "staging/tree_removal.h"

namespace bulkhead::staging {
namespace {

// Bounds on the work one run does for others: about 20 ms of reading, and a few removals.
constexpr std::size_t kScannedEntriesMax = 65536;
constexpr int kRemovedMax = 16;

bool ProcessLives(const OwnerIdentity& owner) {
  const Result<ProcStat> stat = ReadProcStat(owner.pid);
  if (!stat) {
    return stat.error().code != ErrorCode::kNotFound;
  }
  return stat->start_time == owner.start_ticks && !stat->dead();
}

// False if the name alone does not speak against removal; the lock has the last word.
bool OwnerMayLive(const OwnerIdentity& owner, const OwnerIdentity& self, BorrowedFd directory) {
  if (owner.boot_id != self.boot_id) {
    return !IsLocalFileSystem(directory);
  }
  if (owner.pid_namespace != self.pid_namespace) {
    return false;
  }
  return ProcessLives(owner);
}

bool IsPrivateDirectory(BorrowedFd directory) {
  struct stat status{};
  return fstat(directory.get(), &status) == 0 && status.st_uid == geteuid() &&
         (status.st_mode & ACCESSPERMS) == S_IRWXU;
}

bool HoldsOnlyStagedFile(BorrowedFd directory) {
  const Result<Listing> listing = ListNames(directory, {}, 2);
  if (!listing || listing->names.size() > 1) {
    return false;
  }
  return listing->names.empty() || listing->names.front() == kStagedFileName;
}

bool RemoveIfStale(const EntryAt& entry, const OwnerIdentity& owner, const OwnerIdentity& self) {
  const UniqueFd staging(openat(entry.directory.get(), entry.name.c_str(),
                                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!staging.valid() || !IsPrivateDirectory(staging.borrow()) ||
      OwnerMayLive(owner, self, staging.borrow()) ||
      TakeOwnerLock(staging.borrow()) != LockState::kTaken ||
      !HoldsOnlyStagedFile(staging.borrow())) {
    return false;
  }
  if (unlinkat(staging.get(), kStagedFileName, 0) != 0 && errno != ENOENT) {
    return false;
  }
  return RemoveEmptyDirectory(entry, staging.borrow()).has_value();
}

}  // namespace

JanitorReport RemoveStaleStaging(BorrowedFd directory, const OwnerIdentity& self) {
  JanitorReport report;
  const Result<Listing> listing = ListNames(directory, kStagingPrefix, kScannedEntriesMax);
  if (!listing) {
    return report;
  }
  for (const std::string& name : listing->names) {
    const std::optional<OwnerIdentity> owner = ParseStagingName(name);
    if (!owner) {
      continue;
    }
    if (report.removed < kRemovedMax && RemoveIfStale({directory, name}, *owner, self)) {
      ++report.removed;
    } else {
      ++report.left;
    }
  }
  return report;
}

LockState TakeOwnerLock(BorrowedFd staging_directory) {
  if (flock(staging_directory.get(), LOCK_EX | LOCK_NB) == 0) {
    return LockState::kTaken;
  }
  return errno == EWOULDBLOCK ? LockState::kHeldElsewhere : LockState::kUnsupported;
}

bool IsLocalFileSystem(BorrowedFd directory) {
  constexpr std::uint64_t kZfsMagic = 0x2fc12fc1;  // not in linux/magic.h
  struct statfs status{};
  if (fstatfs(directory.get(), &status) != 0) {
    return false;
  }
  switch (static_cast<std::uint64_t>(status.f_type)) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case kZfsMagic:
      return true;
    default:
      return false;
  }
}

}  // namespace bulkhead::staging
