#include "staging/staging_area.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/errno_error.h"
#include "base/strings.h"
#include "staging/durable_rename.h"
#include "staging/file_digest.h"
#include "staging/janitor.h"
#include "staging/proc_facts.h"

namespace bulkhead::staging {
namespace {

constexpr mode_t kDirectoryMode = S_IRWXU;
constexpr mode_t kFileMode = S_IRUSR | S_IWUSR;
constexpr mode_t kPublicFileMode = 0666;

// A janitor of another pid namespace may take a directory in the instant before it is locked. Every
// attempt has a new name, so losing more than once is already hard to arrange.
constexpr int kCreateAttempts = 3;

struct Location {
  std::string parent;
  std::string leaf;
};

// `path` is valid: absolute and with a leaf.
Location Split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

std::string_view KindName(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFLNK:
      return "a symbolic link";
    case S_IFIFO:
      return "a named pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFBLK:
    case S_IFCHR:
      return "a device";
    default:
      return "not a regular file";
  }
}

// Somebody who can write to the parent may have moved a directory with content under the new name;
// owning it would mean emptying it.
Result<bool> IsFreshDirectory(BorrowedFd directory) {
  struct stat status{};
  if (fstat(directory.get(), &status) != 0 || status.st_uid != geteuid() || status.st_nlink == 0) {
    return false;
  }
  const Listing listing = BH_TRY(ListNames(directory, {}, 1));
  return listing.complete && listing.names.empty();
}

}  // namespace

std::string_view CommitStepName(CommitStep step) {
  switch (step) {
    case CommitStep::kNone:
      return "";
    case CommitStep::kCheckFile:
      return "staged-file";
    case CommitStep::kCheckSize:
      return "output-limit";
    case CommitStep::kCheckDestination:
      return "destination";
    case CommitStep::kSetMode:
      return "mode";
    case CommitStep::kSyncFile:
      return "sync-file";
    case CommitStep::kDigest:
      return "digest";
    case CommitStep::kReplace:
      return "replace";
    case CommitStep::kSyncDirectory:
      return "sync-directory";
  }
  return "";
}

StagingArea::StagingArea(const OutputGrant& grant, UniqueFd parent, StagingHooks hooks)
    : grant_(grant),
      parent_(std::move(parent)),
      destination_{parent_.borrow(), Split(grant.path).leaf},
      hooks_(std::move(hooks)) {}

StagingArea::~StagingArea() {
  // Whoever needs to know of a failure has called Discard or Commit; the janitor gets another
  // chance later.
  static_cast<void>(Discard());
}

Result<std::unique_ptr<StagingArea>> StagingArea::Create(const OutputGrant& grant,
                                                         const OwnerIdentity& owner,
                                                         StagingHooks hooks) {
  if (Status valid = grant.Validate(); !valid) {
    valid.error().code = ErrorCode::kOutput;
    return Fail(std::move(valid).error());
  }
  const std::string parent_path = Split(grant.path).parent;
  UniqueFd parent(open(parent_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) {
    return Fail(ErrnoError(ErrorCode::kOutput, "open the output directory", parent_path, errno));
  }
  RemoveStaleStaging(parent.borrow(), owner);
  std::unique_ptr<StagingArea> area(new StagingArea(grant, std::move(parent), std::move(hooks)));
  BH_TRY(area->CreateDirectory(owner));
  BH_TRY(area->CreateFile());
  return area;
}

Status StagingArea::CreateDirectory(const OwnerIdentity& owner) {
  for (int attempt = 0; attempt < kCreateAttempts; ++attempt) {
    const EntryAt entry{parent_.borrow(), MakeStagingName(owner)};
    if (mkdirat(parent_.get(), entry.name.c_str(), kDirectoryMode) != 0) {
      return Fail(Describe("create a staging directory for", errno));
    }
    UniqueFd directory(
        openat(parent_.get(), entry.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory.valid() && errno != ENOENT) {
      const int sys_errno = errno;
      unlinkat(parent_.get(), entry.name.c_str(), AT_REMOVEDIR);
      return Fail(Describe("open the staging directory for", sys_errno));
    }
    // Without lock support no janitor removes anything here either.
    if (directory.valid() && TakeOwnerLock(directory.borrow()) != LockState::kHeldElsewhere) {
      const Result<bool> fresh = IsFreshDirectory(directory.borrow());
      if (!fresh) {  // no descriptor is left to look with
        unlinkat(parent_.get(), entry.name.c_str(), AT_REMOVEDIR);
        return Fail(Describe("look into the staging directory for", fresh.error().sys_errno));
      }
      if (*fresh) {
        entry_ = entry;
        directory_ = std::move(directory);
        return {};
      }
    }
    // Whatever it is, and whoever has it: it stays only if it holds something.
    unlinkat(parent_.get(), entry.name.c_str(), AT_REMOVEDIR);
  }
  return Fail(ErrorCode::kOutput,
              fmt::format("another process interferes with the staging directory for {}",
                          Quoted(grant_.path)));
}

Status StagingArea::CreateFile() {
  worker_file_ = UniqueFd(openat(directory_.get(), kStagedFileName,
                                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!worker_file_.valid()) {
    return Fail(Describe("create the staged file for", errno));
  }
  // O_NONBLOCK: a named pipe put here meanwhile must not hold us up.
  file_ = UniqueFd(
      openat(directory_.get(), kStagedFileName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat created{};
  struct stat opened{};
  if (!file_.valid() || fstat(worker_file_.get(), &created) != 0 ||
      fstat(file_.get(), &opened) != 0) {
    return Fail(Describe("open the staged file for", errno));
  }
  if (!SameObject(created, opened)) {
    return Fail(ErrorCode::kOutput, fmt::format("another process replaced the staged file for {}",
                                                Quoted(grant_.path)));
  }
  return {};
}

CommitResult StagingArea::Commit(const StopProbe& stop) {
  BH_CHECK(!discarding_);
  worker_file_.Reset();
  CommitResult result;
  if (Status published = Publish(stop, result); published) {
    result.failed_at = CommitStep::kNone;
  } else {
    result.detail = std::move(published).error();
    result.detail.code = ErrorCode::kOutput;
    result.detail.reason = CommitStepName(result.failed_at);
  }
  if (Status removed = Discard(); !removed) {
    result.removal_failed = true;
    result.removal_detail = std::move(removed).error();
  }
  return result;
}

// Names each step in result.failed_at before it is tried.
Status StagingArea::Publish(const StopProbe& stop, CommitResult& result) {
  if (stop()) {
    result.stopped = true;
    return {};
  }
  result.failed_at = CommitStep::kCheckFile;
  const struct stat staged = BH_TRY(CheckStagedFile());
  const auto bytes = static_cast<std::uint64_t>(staged.st_size);
  result.failed_at = CommitStep::kCheckSize;
  if (bytes > grant_.bytes_max) {
    return Fail(ErrorCode::kOutput, fmt::format("the output for {} has {} bytes; the limit is {}",
                                                Quoted(grant_.path), bytes, grant_.bytes_max));
  }
  result.failed_at = CommitStep::kCheckDestination;
  const mode_t mode = BH_TRY(PublishedMode());
  result.failed_at = CommitStep::kSetMode;
  if (fchmod(file_.get(), mode) != 0) {
    return Fail(Describe("set the mode of the staged file for", errno));
  }
  result.failed_at = CommitStep::kSyncFile;
  BH_TRY(CheckFault(hooks_.fail_sync_file, "fsync the staged file for"));
  BH_TRY_CONTEXT(SyncFile(file_.borrow()), Quoted(grant_.path));
  result.failed_at = CommitStep::kDigest;
  std::string sha256 = BH_TRY_CONTEXT(HashFile(file_.borrow(), bytes), Quoted(grant_.path));
  if (hooks_.between_fsync_and_rename) {
    hooks_.between_fsync_and_rename();
  }
  // The steps above may have taken long.
  if (stop()) {
    result.stopped = true;
    return {};
  }
  result.failed_at = CommitStep::kCheckFile;
  if (BH_TRY(CheckStagedFile()).st_size != staged.st_size) {
    return Fail(
        ErrorCode::kOutput,
        fmt::format("the output for {} changed while it was being published", Quoted(grant_.path)));
  }
  result.failed_at = CommitStep::kReplace;
  BH_TRY(Replace());
  result.published = true;
  result.bytes = bytes;
  result.sha256 = std::move(sha256);
  result.failed_at = CommitStep::kSyncDirectory;
  BH_TRY(CheckFault(hooks_.fail_sync_directory, "fsync the directory of"));
  BH_TRY_CONTEXT(SyncDirectory(parent_.borrow()), Quoted(grant_.path));
  result.durable = true;
  return {};
}

Result<struct stat> StagingArea::CheckStagedFile() const {
  struct stat entry{};
  if (fstatat(directory_.get(), kStagedFileName, &entry, AT_SYMLINK_NOFOLLOW) != 0) {
    return Fail(Describe("find the staged file for", errno));
  }
  struct stat held{};
  if (fstat(file_.get(), &held) != 0) {
    return Fail(Describe("stat the staged file for", errno));
  }
  if (!SameObject(entry, held)) {
    return Fail(ErrorCode::kOutput,
                fmt::format("the staged file for {} was replaced by {}", Quoted(grant_.path),
                            S_ISREG(entry.st_mode) ? "another file" : KindName(entry.st_mode)));
  }
  if (held.st_nlink != 1) {
    return Fail(ErrorCode::kOutput,
                fmt::format("the staged file for {} has {} names; only one is accepted",
                            Quoted(grant_.path), held.st_nlink));
  }
  return held;
}

Result<mode_t> StagingArea::PublishedMode() const {
  struct stat old{};
  const bool exists =
      fstatat(parent_.get(), destination_.name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists && errno != ENOENT) {
    return Fail(Describe("stat", errno));
  }
  if (exists && S_ISREG(old.st_mode)) {
    return old.st_mode & ACCESSPERMS;
  }
  if (exists && !S_ISLNK(old.st_mode)) {
    return Fail(ErrorCode::kOutput,
                fmt::format("{} is {}; only a file or a symbolic link is replaced",
                            Quoted(grant_.path), KindName(old.st_mode)));
  }
  return kPublicFileMode & ~BH_TRY(ReadUmask());
}

Status StagingArea::Replace() const {
  BH_TRY(CheckFault(hooks_.fail_rename, "rename the staged file to"));
  const EntryAt staged{directory_.borrow(), kStagedFileName};
  const Status replaced = grant_.no_clobber ? RenameNoReplace(staged, destination_)
                                            : RenameReplacing(staged, destination_);
  if (replaced) {
    return {};
  }
  const int sys_errno = replaced.error().sys_errno;
  if (sys_errno == EEXIST) {
    return Fail(ErrorCode::kOutput,
                fmt::format("{} exists and may not be replaced", Quoted(grant_.path)), EEXIST);
  }
  return Fail(Describe("rename the staged file to", sys_errno));
}

Status StagingArea::Discard() {
  discarding_ = true;
  // Closed first: network file systems keep an open file under another name, and the directory
  // would not be empty.
  worker_file_.Reset();
  file_.Reset();
  if (!directory_.valid()) {
    return {};
  }
  BH_TRY(CheckFault(hooks_.fail_removal, "remove the staging directory for"));
  const std::string context =
      fmt::format("removing the staging directory for {}", Quoted(grant_.path));
  BH_TRY_CONTEXT(RemoveContents(directory_.borrow()), context);
  BH_TRY_CONTEXT(RemoveEmptyDirectory(entry_, directory_.borrow()), context);
  directory_.Reset();
  return {};
}

Status StagingArea::CheckFault(const Fault& fault, std::string_view call) const {
  const int sys_errno = fault ? fault() : 0;
  if (sys_errno != 0) {
    return Fail(Describe(call, sys_errno));
  }
  return {};
}

Error StagingArea::Describe(std::string_view call, int sys_errno) const {
  return ErrnoError(ErrorCode::kOutput, call, grant_.path, sys_errno);
}

}  // namespace bulkhead::staging
