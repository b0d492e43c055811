// A child process that borrows our memory until it has executed something else, as vfork does, but
// on a stack of its own. Its cost does not depend on how much memory the caller has.
#pragma once

#include <bulkhead/result.h>

#include <sys/types.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace bulkhead::process {

struct CloneRequest {
  int (*body)(void*) =
      nullptr;  // runs in the child, never returns; see child_setup.h for what it may do
  void* argument = nullptr;
  std::uint64_t namespaces = 0;  // CLONE_NEW* flags
  BorrowedFd
      cgroup;  // a version 2 directory to be born in, if valid; ENOSYS where that cannot be had
};

struct ClonedChild {
  pid_t pid = 0;
  UniqueFd pidfd;
};

// Returns when the child has executed or exited; the calling thread is suspended and no signal
// handler runs meanwhile, here or there. kLaunch with the errno of clone(2).
Result<ClonedChild> CloneChild(const CloneRequest& request);

}  // namespace bulkhead::process
