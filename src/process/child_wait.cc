#include "process/child_wait.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/errno_error.h"
#include "base/proc_stat.h"

namespace bulkhead::process {
namespace {

std::chrono::microseconds ToDuration(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

}  // namespace

// waitid(2) by pidfd; the raw call, because only that tells what the process used.
Result<WaitAnswer> WaitForChild(BorrowedFd pidfd, int options) {
  for (;;) {
    WaitAnswer answer;
    siginfo_t info{};
    const long result = syscall(SYS_waitid, P_PIDFD, pidfd.get(), &info, options, &answer.usage);
    if (result != 0 && errno == EINTR) {
      continue;
    }
    if (result != 0 && errno == ECHILD) {
      answer.state = WaitAnswer::State::kNotOurs;
      return answer;
    }
    if (result != 0) {
      return Fail(ErrnoError(ErrorCode::kIo, "waitid", "", errno));
    }
    if (info.si_pid != 0) {
      answer.state = WaitAnswer::State::kExited;
      const bool exited = info.si_code == CLD_EXITED;
      answer.exit = {exited ? ExitStatus::How::kExited : ExitStatus::How::kSignalled,
                     info.si_status};
    }
    return answer;
  }
}

std::chrono::microseconds CpuTime(const rusage& usage) {
  return ToDuration(usage.ru_utime) + ToDuration(usage.ru_stime);
}

std::uint64_t RssBytesPeak(const rusage& usage) {
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

Status LowerDataLimit(pid_t pid, std::uint64_t growth_bytes) {
  const MemoryUse use = BH_TRY(ReadMemoryUse(pid));
  const rlim_t lower = use.data_bytes + std::min(growth_bytes, RLIM_INFINITY - use.data_bytes);
  rlimit limit{};
  if (prlimit(pid, RLIMIT_DATA, nullptr, &limit) == 0) {
    limit = {std::min(limit.rlim_cur, lower), std::min(limit.rlim_max, lower)};
    if (prlimit(pid, RLIMIT_DATA, &limit, nullptr) == 0) {
      return {};
    }
  }
  return Fail(ErrnoError(ErrorCode::kIo, "prlimit", std::to_string(pid), errno));
}

}  // namespace bulkhead::process
