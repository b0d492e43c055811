// What a worker imposes on itself before it reads anything hostile. It cannot be undone.
//
// With the sandbox: resource limits, no new privileges, an empty root (where the worker has mounts
// of its own), no capabilities, not dumpable, Landlock and a system call filter; without: limits,
// no new privileges and not dumpable. Call once, before other threads exist.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "worker/resource_limits.h"

namespace bulkhead::worker {

// A directory the guest may use, and everything beneath it.
struct DirectoryGrant {
  UniqueFd directory;
  std::string guest_path;
  bool writable = false;
};

struct LockdownRequest {
  std::vector<DirectoryGrant> directories;
  std::uint64_t scratch_bytes = 0;  // 0: none, else a writable directory /tmp of this size is added
  ResourceLimits limits;            // descriptors_max is chosen here
  bool sandbox = true;
  bool own_mounts = false;       // this process lives in namespaces made for it
  bool own_user = false;         // one of them is a user namespace
  bool may_change_user = false;  // the parent can limit and kill it as another user too
};

// The last step down, taken when the guest's code is compiled and before it runs.
class GuestPhase {
 public:
  GuestPhase(MemoryMeter meter, bool sandbox) : meter_(std::move(meter)), sandbox_(sandbox) {}

  // From now on private memory grows by at most `data_bytes`, and with the sandbox nothing can be
  // made executable and neither limits nor filters change any more. Binds all threads; kLaunch with
  // the mechanism as reason.
  Status Enter(std::uint64_t data_bytes) const;

  // The system call filter of the lock-down is in force.
  bool sandboxed() const { return sandbox_; }

 private:
  MemoryMeter meter_;
  bool sandbox_;
};

struct LockedDown {
  std::vector<std::string> mechanisms;  // "rlimits", "no-new-privs", "scratch", "empty-root",
                                        // "landlock-abi-7", "unprivileged-user",
                                        // "no-capabilities", "not-dumpable", "seccomp"
  std::vector<DirectoryGrant> directories;
  GuestPhase guest_phase;
};

// kLaunch: Error::reason names the mechanism, sys_errno says why. The process must then end: it may
// be half locked down.
Result<LockedDown> LockDown(LockdownRequest request);

}  // namespace bulkhead::worker
