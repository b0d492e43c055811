// StagingArea: the private file a worker writes its output to, beside the destination, and the
// decision to publish it. The destination is either the old object or the complete new file, at
// every moment.
//
// Ownership: held by unique_ptr, made before the worker is spawned, used after it is reaped. The
// destructor discards. Thread: one at a time, any. On disk: a 0700 directory (staging_name.h) in
// the destination's parent with one 0600 file in it. Everything is done through handles opened at
// creation, so renaming or replacing a directory on the path redirects nothing. Failures are
// kOutput and name the path.
#pragma once

#include <bulkhead/output_grant.h>
#include <bulkhead/result.h>

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "staging/staging_hooks.h"
#include "staging/staging_name.h"
#include "staging/tree_removal.h"

namespace bulkhead::staging {

// True once the run must not publish any more (cancelled or past its deadline). Called several
// times.
using StopProbe = std::function<bool()>;

enum class CommitStep : std::uint8_t {
  kNone,
  kCheckFile,         // the staged entry is not the file the worker was given, or has another name
  kCheckSize,         // larger than OutputGrant::bytes_max
  kCheckDestination,  // the destination is a directory or a special file
  kSetMode,
  kSyncFile,
  kDigest,
  kReplace,
  kSyncDirectory,  // after publication: the new file is visible, but may not survive a power cut
};

// "staged-file", "output-limit", ...; also the `reason` of CommitResult::detail. Empty for kNone.
std::string_view CommitStepName(CommitStep step);

// What became of the output. Exactly one of: published; stopped; neither (failed_at and detail say
// why).
struct CommitResult {
  bool published = false;       // the destination is the new file
  bool durable = false;         // published, and certain to survive a power cut
  bool stopped = false;         // the probe said stop in time; nothing published
  bool removal_failed = false;  // staging is still on disk, whatever else happened
  CommitStep failed_at = CommitStep::kNone;
  Error detail;          // of failed_at
  Error removal_detail;  // of removal_failed
  std::uint64_t bytes = 0;
  std::string sha256;  // of the published bytes, lower-case hex
};

class StagingArea {
 public:
  // Removes stale staging directories of dead owners first. The destination itself is not looked
  // at.
  static Result<std::unique_ptr<StagingArea>> Create(const OutputGrant& grant,
                                                     const OwnerIdentity& owner,
                                                     StagingHooks hooks = {});

  StagingArea(const StagingArea&) = delete;
  StagingArea& operator=(const StagingArea&) = delete;
  StagingArea(StagingArea&&) = delete;
  StagingArea& operator=(StagingArea&&) = delete;
  ~StagingArea();

  // The worker's end: open for reading and writing, with an offset of its own. Valid until Commit
  // or Discard.
  BorrowedFd file() const { return worker_file_.borrow(); }

  // Publishes the staged file unless `stop` says otherwise, then removes staging in any case. Once,
  // after the worker is reaped and not after Discard. The file gets the permission bits of the
  // regular file it replaces (never its set-id bits), else those the umask allows; owner and other
  // metadata are the creator's.
  CommitResult Commit(const StopProbe& stop);

  // Removes staging; the destination is untouched. May be repeated after a failure; success lasts.
  Status Discard();

 private:
  StagingArea(const OutputGrant& grant, UniqueFd parent, StagingHooks hooks);

  Status CreateDirectory(const OwnerIdentity& owner);
  Status CreateFile();

  Status Publish(const StopProbe& stop, CommitResult& result);
  Result<struct stat> CheckStagedFile() const;
  Result<mode_t> PublishedMode() const;
  Status Replace() const;
  Status CheckFault(const Fault& fault, std::string_view call) const;
  Error Describe(std::string_view call, int sys_errno) const;

  OutputGrant grant_;
  UniqueFd parent_;  // O_PATH
  EntryAt destination_;
  EntryAt entry_;       // the staging directory's place in parent_
  UniqueFd directory_;  // the staging directory; carries the owner lock
  UniqueFd file_;       // read-only, opened before any worker could put a lease on the file
  UniqueFd worker_file_;
  StagingHooks hooks_;
  bool discarding_ = false;
};

}  // namespace bulkhead::staging
