#include "process/pidfd.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "base/errno_error.h"
#include "base/wait_set.h"

namespace bulkhead::process {
namespace {

// linux/pidfd.h, spelled out because the headers of older systems lack it.
constexpr unsigned kPidfdSignalProcessGroup = 1U << 2;

// First published layout of struct pidfd_info, 64 bytes; newer kernels accept it and fill this
// much.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup_id;
  std::uint32_t pid;
  std::uint32_t thread_group;
  std::uint32_t parent;
  std::uint32_t credentials[8];
  std::int32_t exit_code;  // a wait status
};

static_assert(sizeof(PidfdInfo) == 64);

constexpr std::uint64_t kPidfdInfoExit = 1U << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

// The last reader of a dead process releases it some microseconds after the pidfd became readable;
// only then is its exit on record.
constexpr int kReleaseWaitMsMax = 100;

ExitStatus FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) {
    return {ExitStatus::How::kSignalled, WTERMSIG(status)};
  }
  return {ExitStatus::How::kExited, WEXITSTATUS(status)};
}

}  // namespace

Result<UniqueFd> OpenPidfd(pid_t pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0U)));
  if (!fd.valid()) {
    const ErrorCode code = errno == ESRCH                       ? ErrorCode::kNotFound
                           : errno == EMFILE || errno == ENFILE ? ErrorCode::kResourceExhausted
                                                                : ErrorCode::kIo;
    return Fail(ErrnoError(code, "pidfd_open", std::to_string(pid), errno));
  }
  return fd;
}

Status SignalProcess(BorrowedFd pidfd, int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0U) != 0 && errno != ESRCH) {
    return Fail(ErrnoError(ErrorCode::kIo, "pidfd_send_signal", "", errno));
  }
  return {};
}

Result<GroupAnswer> SignalGroup(BorrowedFd pidfd, int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, kPidfdSignalProcessGroup) == 0) {
    return GroupAnswer::kReached;
  }
  switch (errno) {
    case ESRCH:
      return GroupAnswer::kEmpty;
    case EINVAL:
      return GroupAnswer::kUnsupported;
    default:
      return Fail(ErrnoError(ErrorCode::kIo, "pidfd_send_signal to process group", "", errno));
  }
}

Result<bool> HasExited(BorrowedFd pidfd) {
  return WaitExited(pidfd, Deadline::At(MonotonicTime()));  // at boot: passed
}

Result<bool> WaitExited(BorrowedFd pidfd, Deadline deadline) {
  constexpr int kExit = 0;
  const MonotonicClock clock;
  WaitSet set;
  set.Add(pidfd, POLLIN, kExit);
  return set.Wait(clock, deadline);
}

Result<bool> WaitAllExited(std::span<const UniqueFd> pidfds, Deadline deadline) {
  for (const UniqueFd& pidfd : pidfds) {
    if (!BH_TRY(WaitExited(pidfd.borrow(), deadline))) {
      return false;
    }
  }
  return true;
}

std::optional<ExitStatus> RecordedExit(BorrowedFd pidfd) {
  for (const bool last_try : {false, true}) {
    PidfdInfo info{};
    info.mask = kPidfdInfoExit;
    if (ioctl(pidfd.get(), kPidfdGetInfo, &info) != 0) {
      return std::nullopt;
    }
    if ((info.mask & kPidfdInfoExit) != 0) {
      return FromWaitStatus(info.exit_code);
    }
    if (!last_try) {
      pollfd released{pidfd.get(), 0, 0};  // only POLLHUP, which says "released"
      while (poll(&released, 1, kReleaseWaitMsMax) < 0 && errno == EINTR) {
      }
    }
  }
  return std::nullopt;
}

}  // namespace bulkhead::process
