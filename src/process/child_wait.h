// What both kinds of WorkerProcess ask the kernel. Stateless; any thread.
#pragma once

#include <bulkhead/result.h>

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>

#include "base/unique_fd.h"
#include "process/worker_process.h"

namespace bulkhead::process {

struct WaitAnswer {
  enum class State : std::uint8_t {
    kRunning,
    kExited,
    kNotOurs,  // no child of this process, or reaped by somebody else
  };

  State state = State::kRunning;
  ExitStatus exit;
  rusage usage{};
};

// waitid(2) by pidfd with these options.
Result<WaitAnswer> WaitForChild(BorrowedFd pidfd, int options);

std::chrono::microseconds CpuTime(const rusage& usage);
std::uint64_t RssBytesPeak(const rusage& usage);

// Lowers RLIMIT_DATA to what the process uses now plus this much.
Status LowerDataLimit(pid_t pid, std::uint64_t growth_bytes);

}  // namespace bulkhead::process
