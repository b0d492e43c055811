// A leaf cgroup that holds one worker's tree, so that it can be killed whole, whatever sessions and
// groups its processes moved to, or limited where it has a controller. Killing needs none.
//
// A leaf is a directory, locked (flock) by its owner for as long as the owner lives. An unlocked
// one was left by a dead owner and may be adopted.
#pragma once

#include <bulkhead/deadline.h>
#include <bulkhead/result.h>

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "process/cgroup_limits.h"
#include "process/cgroup_location.h"

namespace bulkhead::process {

// How to kill a cgroup of one kind without letting forks outrun the kill.
struct CgroupMethod {
  CgroupKind kind;
  std::string_view name;  // for reports
  const char* kill_file;  // "1" kills all at once; nullptr: one by one while hold_file keeps them
                          // from forking
  const char* hold_file;  // nullptr as well: one by one until none is left
  std::string_view hold;
  std::string_view release;
};

// All that hold a tree so that it can be killed, best first.
std::span<const CgroupMethod> CgroupMethods();
// Those of the hierarchies of version 1 that limit; one of them holds a tree as well.
std::span<const CgroupMethod> V1MemoryMethods();
std::span<const CgroupMethod> V1PidsMethods();

// One owner, one thread at a time. Destroying a leaf removes the directory if nothing is in it;
// otherwise it stays for the next adopter.
class CgroupLeaf {
 public:
  // A new directory, locked. kUnsupported: this kind of cgroup lacks a file that `method` needs.
  static Result<std::unique_ptr<CgroupLeaf>> Create(const CgroupMethod& method, std::string path);
  // An existing one whose owner is gone; fails if it is locked or just vanished.
  static Result<std::unique_ptr<CgroupLeaf>> Adopt(const CgroupMethod& method, std::string path);

  CgroupLeaf(const CgroupLeaf&) = delete;
  CgroupLeaf& operator=(const CgroupLeaf&) = delete;
  ~CgroupLeaf();

  const CgroupMethod& method() const { return *method_; }

  const std::string& path() const { return path_; }

  BorrowedFd directory() const { return directory_.borrow(); }

  // Nobody removed it.
  bool usable() const;

  // A process joins by writing "0".
  BorrowedFd membership() const { return membership_.borrow(); }

  CgroupLimiter& limiter() { return limiter_; }

  const CgroupLimiter& limiter() const { return limiter_; }

  // Once killed as a whole a cgroup is not good for another worker: from some kernel versions on
  // (seen on 6.18) a process born into it is killed at birth. Nor is one that memory stays in.
  bool reusable() const { return !killed_ && usable() && limiter_.clean(); }

  // SIGKILL to every process in it. Nothing to do if there is none but `dying`, to which SIGKILL
  // was sent already: it cannot fork any more.
  Status Kill(pid_t dying = 0);
  // Kills until no process is left; false: the deadline passed. Needs no free descriptor to see
  // that none is.
  Result<bool> KillAndWait(Deadline deadline);

 private:
  struct Files {
    UniqueFd directory;
    UniqueFd membership;
  };

  CgroupLeaf(const CgroupMethod& method, std::string path, Files files)
      : method_(&method),
        path_(std::move(path)),
        directory_(std::move(files.directory)),
        membership_(std::move(files.membership)),
        limiter_(directory_.borrow(), method.kind) {}

  static Result<Files> OpenLocked(const std::string& path);
  Result<std::string> ReadMembership() const;
  Result<std::vector<pid_t>> Pids() const;
  Result<std::vector<UniqueFd>> OpenProcesses() const;
  Status KillOneByOne() const;
  void WaitUnpopulated() const;

  const CgroupMethod* method_;
  std::string path_;
  UniqueFd directory_;
  UniqueFd membership_;
  CgroupLimiter limiter_;
  bool killed_ = false;
};

}  // namespace bulkhead::process
