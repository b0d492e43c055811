// Waits on a handful of descriptors until a deadline. One thread; no allocation after the first
// Wait.
//
//   WaitSet set;
//   set.Add(socket, POLLIN, kSocket);            // key: the caller's own name for it
//   if (BH_TRY(set.Wait(clock, deadline))) { if (set.Ready(kSocket) & POLLIN) ... }
//
// The caller rebuilds the set for every wait (Clear + Add): what is waited for is visible in one
// place.
#pragma once

#include <bulkhead/deadline.h>
#include <bulkhead/result.h>

#include <poll.h>

#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace bulkhead {

class WaitSet {
 public:
  void Clear();
  // An invalid descriptor is ignored, so optional sources need no branch.
  void Add(BorrowedFd fd, short events, int key);
  // true: something is ready; false: the deadline passed. EINTR is retried with the time that is
  // left.
  Result<bool> Wait(const Clock& clock, Deadline deadline);
  // poll(2) revents of the entry added with `key`, 0 if it is not ready or not in the set.
  short Ready(int key) const;

 private:
  std::vector<pollfd> fds_;
  std::vector<int> keys_;
};

}  // namespace bulkhead
