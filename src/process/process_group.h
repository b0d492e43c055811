// The process group that a worker founded (it is the group's and the session's leader), reached
// without ever trusting a number: by the leader's pidfd, or by number only while the unreaped
// leader keeps that number reserved.
//
// A value that borrows the pidfd. Any thread.
#pragma once

#include <bulkhead/deadline.h>
#include <bulkhead/result.h>

#include <sys/types.h>

#include <vector>

#include "base/unique_fd.h"
#include "process/worker_process.h"

namespace bulkhead::process {

enum class Leader : std::uint8_t {
  kUnreaped,  // running or a zombie of ours: its number belongs to it
  kReaped,    // its number may be anybody's by now
};

class ProcessGroup {
 public:
  ProcessGroup(BorrowedFd leader_pidfd, const ProcessIdentity& leader)
      : pidfd_(leader_pidfd), leader_(leader) {}

  // SIGKILL to every member at once: no member can fork its way out.
  Status Kill(Leader state) const;

  // After Kill and the leader's reap: waits for what else was in the group. If anything was, what
  // it left in other groups of the session is killed too. false: the deadline passed.
  Result<bool> WaitGone(Deadline deadline) const;

 private:
  struct Members {
    std::vector<UniqueFd> pidfds;  // of processes that had not exited yet
    bool number_reissued = false;
  };

  Result<bool> Exists() const;
  Result<Members> OpenMembers() const;

  BorrowedFd pidfd_;
  ProcessIdentity leader_;
};

}  // namespace bulkhead::process
