#include "process/contained_process.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/errno_error.h"
#include "process/child_wait.h"
#include "process/pidfd.h"

namespace bulkhead::process {
namespace {

struct Received {
  InitReport report;
  UniqueFd pidfd;
  pid_t pid = 0;
};

void TakeControl(msghdr& message, Received& received) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET) {
      continue;
    }
    if (header->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      received.pidfd.Reset(fd);
    } else if (header->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
      received.pid = credentials.pid;
    }
  }
}

// The next report, or nothing: init has ended (or, with MSG_DONTWAIT, has not sent any).
Result<std::optional<Received>> Receive(BorrowedFd socket, int flags) {
  for (;;) {
    Received received;
    iovec part{&received.report, sizeof received.report};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket.get(), &message, flags | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got == 0 || (got < 0 && (errno == EAGAIN || errno == ECONNRESET))) {
      return std::nullopt;
    }
    if (got < 0) {
      return Fail(ErrnoError("recvmsg", "init", errno));
    }
    TakeControl(message, received);
    return received;
  }
}

ExitStatus FromWaitStatus(int status) {
  return WIFEXITED(status) ? ExitStatus{ExitStatus::How::kExited, WEXITSTATUS(status)}
                           : ExitStatus{ExitStatus::How::kSignalled, WTERMSIG(status)};
}

}  // namespace

Result<int> TakeFirstReport(ContainedProcess::Parts& parts) {
  std::optional<Received> received = BH_TRY(Receive(parts.reports.borrow(), 0));
  if (!received) {
    return Fail(ErrorCode::kIo, "the init of its namespace ended at once");
  }
  if (received->report.kind == InitReport::Kind::kExecFailed) {
    return received->report.error;
  }
  if (!received->pidfd.valid()) {
    return Fail(ErrorCode::kResourceExhausted, "no descriptor is left for the worker", EMFILE);
  }
  parts.worker_pidfd = std::move(received->pidfd);
  // Init has not waited for the worker yet, so the number is the worker's, dead or alive.
  parts.worker = IdentityOf(received->pid).value_or(ProcessIdentity{received->pid, 0});
  return 0;
}

ContainedProcess::~ContainedProcess() {
  if (!contained_) {
    const MonotonicClock clock;
    // Nobody is left to be told; what could not be reaped stays killed.
    KillAndReap(Deadline::After(clock.Now(), kDestructionDrain)).has_value();
  }
}

OuterWalls ContainedProcess::walls() const {
  OuterWalls walls = WallsOf(parts_.mode);
  walls.no_cgroup_because = parts_.cgroups.why_not();
  for (std::string& mechanism : parts_.cgroups.mechanisms()) {
    walls.mechanisms.push_back(std::move(mechanism));
  }
  return walls;
}

Result<std::optional<ExitStatus>> ContainedProcess::Observe() {
  if (exit_) {
    return exit_;
  }
  const WaitAnswer answer =
      BH_TRY(WaitForChild(parts_.init_pidfd.borrow(), WEXITED | WNOHANG | WNOWAIT));
  if (answer.state == WaitAnswer::State::kRunning ||
      (answer.state == WaitAnswer::State::kNotOurs &&
       !BH_TRY(HasExited(parts_.init_pidfd.borrow())))) {
    return std::nullopt;
  }
  // Without a last word init was killed, by us or by somebody else, and the worker with it.
  exit_ = TakeLastReport();
  if (!exit_) {
    exit_ = {ExitStatus::How::kSignalled, SIGKILL};
    if (answer.state == WaitAnswer::State::kExited &&
        answer.exit.how == ExitStatus::How::kSignalled) {
      exit_ = answer.exit;
    }
  }
  return exit_;
}

Status ContainedProcess::KillTree() {
  if (contained_) {
    return {};
  }
  SampleMemory();
  Status killed = SignalProcess(parts_.init_pidfd.borrow(), SIGKILL);
  if (!killed) {
    killed.error().message =
        fmt::format("killing worker {}: {}", parts_.worker.pid, killed.error().message);
  }
  return killed;
}

Result<std::optional<ExitStatus>> ContainedProcess::KillAndReap(Deadline deadline) {
  if (contained_) {
    return exit_;
  }
  const Status killed = KillTree();
  if (!BH_TRY(WaitExited(parts_.init_pidfd.borrow(), deadline))) {
    BH_TRY(Status(killed));
    return std::nullopt;
  }
  BH_TRY(Observe());
  const WaitAnswer answer = BH_TRY(WaitForChild(parts_.init_pidfd.borrow(), WEXITED | WNOHANG));
  if (use_.cpu.count() == 0 && answer.state == WaitAnswer::State::kExited) {
    use_.cpu = CpuTime(answer.usage);  // of the whole namespace, where init could not report
  }
  use_.cgroup_memory = parts_.cgroups.Account();
  parts_.cgroups.GiveBack();
  contained_ = true;
  return exit_;
}

Status ContainedProcess::LimitGrowth(const MemoryGrowth& growth) {
  if (WorkerExited()) {
    return {};
  }
  Status lowered = LimitWorkerGrowth(parts_.worker.pid, growth, parts_.cgroups);
  return !lowered && WorkerExited() ? Status() : lowered;
}

void ContainedProcess::SampleMemory() {
  if (WorkerExited()) {
    return;
  }
  const Result<MemoryUse> use = ReadMemoryUse(parts_.worker.pid);
  if (use && !WorkerExited()) {
    use_.rss_bytes_peak = std::max(use_.rss_bytes_peak, use->rss_bytes_peak);
  }
}

// While it has not, its number is its own.
bool ContainedProcess::WorkerExited() const {
  return HasExited(parts_.worker_pidfd.borrow()).value_or(true);
}

std::optional<ExitStatus> ContainedProcess::TakeLastReport() {
  const Result<std::optional<Received>> received = Receive(parts_.reports.borrow(), MSG_DONTWAIT);
  if (!received || !*received || (*received)->report.kind != InitReport::Kind::kExited) {
    return std::nullopt;
  }
  const InitReport& report = (*received)->report;
  use_.cpu = std::chrono::microseconds(report.cpu_us);
  use_.rss_bytes_peak = std::max(use_.rss_bytes_peak, report.rss_bytes_peak);
  return FromWaitStatus(report.wait_status);
}

}  // namespace bulkhead::process
