// Questions and signals by pidfd. A pidfd names one process for ever, so nothing here can hit a
// recycled number. Any thread; the kernel's answer for one moment.
#pragma once

#include <bulkhead/deadline.h>
#include <bulkhead/result.h>

#include <sys/types.h>

#include <optional>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "process/worker_process.h"

namespace bulkhead::process {

// kNotFound if there is no such process.
Result<UniqueFd> OpenPidfd(pid_t pid);

// A process that is gone already is not an error.
Status SignalProcess(BorrowedFd pidfd, int signal);

enum class GroupAnswer : std::uint8_t {
  kReached,      // at least one member, perhaps a zombie
  kEmpty,        // no process of that group exists
  kUnsupported,  // kernel before 6.9: groups can only be named by number
};

// Signals the group that this process founded, also after the founder was reaped. Signal 0 only
// asks.
Result<GroupAnswer> SignalGroup(BorrowedFd pidfd, int signal);

// The whole process, not only its main thread.
Result<bool> HasExited(BorrowedFd pidfd);
// The same, with patience; false: the deadline passed.
Result<bool> WaitExited(BorrowedFd pidfd, Deadline deadline);
Result<bool> WaitAllExited(std::span<const UniqueFd> pidfds, Deadline deadline);

// How a process ended that somebody else reaped; nullopt if the kernel keeps no record
// (before 6.15).
std::optional<ExitStatus> RecordedExit(BorrowedFd pidfd);

}  // namespace bulkhead::process
