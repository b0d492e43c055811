#include "process/child_process.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/clock.h"
#include "base/proc_stat.h"
#include "process/child_wait.h"
#include "process/pidfd.h"

namespace bulkhead::process {

ChildProcess::ChildProcess(Parts parts)
    : pidfd_(std::move(parts.pidfd)),
      identity_(parts.identity),
      group_(pidfd_.borrow(), identity_),
      cgroups_(std::move(parts.cgroups)),
      host_rss_bytes_peak_(parts.host_rss_bytes_peak),
      no_namespaces_because_(std::move(parts.no_namespaces_because)) {}

ChildProcess::~ChildProcess() {
  if (!contained_) {
    const MonotonicClock clock;
    // Nobody is left to be told; what could not be reaped stays killed.
    KillAndReap(Deadline::After(clock.Now(), kDestructionDrain)).has_value();
  }
}

OuterWalls ChildProcess::walls() const {
  OuterWalls walls;
  walls.no_namespaces_because = no_namespaces_because_;
  walls.no_cgroup_because = cgroups_.why_not();
  walls.mechanisms = {"process-group"};
  for (std::string& mechanism : cgroups_.mechanisms()) {
    walls.mechanisms.push_back(std::move(mechanism));
  }
  return walls;
}

Result<std::optional<ExitStatus>> ChildProcess::Observe() {
  if (exit_) {
    return exit_;
  }
  const WaitAnswer answer = BH_TRY(WaitForChild(pidfd_.borrow(), WEXITED | WNOHANG | WNOWAIT));
  switch (answer.state) {
    case WaitAnswer::State::kRunning:
      break;
    case WaitAnswer::State::kExited:
      exit_ = answer.exit;
      break;
    case WaitAnswer::State::kNotOurs:
      if (BH_TRY(HasExited(pidfd_.borrow()))) {
        exit_ = RecordedExit(pidfd_.borrow()).value_or(ExitStatus{});
      }
      break;
  }
  return exit_;
}

Status ChildProcess::KillTree() {
  if (contained_) {
    return {};
  }
  SampleMemory();
  // The group goes first: where somebody else reaps our children, killing the leader would give its
  // number away.
  const Status group = group_.Kill(NumberIsOurs() ? Leader::kUnreaped : Leader::kReaped);
  const Status worker = SignalProcess(pidfd_.borrow(), SIGKILL);
  const Status cgroup = cgroups_.Kill(identity_.pid);
  for (const Status* status : {&worker, &group, &cgroup}) {
    if (!*status) {
      Error error = status->error();
      error.message = fmt::format("killing worker {}: {}", identity_.pid, error.message);
      return Fail(std::move(error));
    }
  }
  return {};
}

Result<std::optional<ExitStatus>> ChildProcess::KillAndReap(Deadline deadline) {
  if (contained_) {
    return exit_;
  }
  // What fails to reach part of the tree must not keep the rest from being reaped; it shows again
  // below.
  const Status killed = KillTree();
  if (!BH_TRY(WaitExited(pidfd_.borrow(), deadline))) {
    BH_TRY(Status(killed));
    return std::nullopt;
  }
  BH_TRY(Reap());
  if (!BH_TRY(WaitTreeGone(deadline))) {
    BH_TRY(Status(killed));
    return std::nullopt;
  }
  use_.cgroup_memory = cgroups_.Account();
  cgroups_.GiveBack();
  contained_ = true;
  return exit_;
}

// While the worker has not exited its number is the worker's; its start time would not do, two
// processes can have the same.
Status ChildProcess::LimitGrowth(const MemoryGrowth& growth) {
  if (reaped_ || BH_TRY(HasExited(pidfd_.borrow()))) {
    return {};
  }
  Status lowered = LimitWorkerGrowth(identity_.pid, growth, cgroups_);
  if (!lowered && BH_TRY(HasExited(pidfd_.borrow()))) {
    return {};
  }
  return lowered;
}

void ChildProcess::SampleMemory() {
  if (reaped_ || HasExited(pidfd_.borrow()).value_or(true)) {
    return;
  }
  const Result<MemoryUse> use = ReadMemoryUse(identity_.pid);
  if (use && !HasExited(pidfd_.borrow()).value_or(true)) {
    use_.rss_bytes_peak = std::max(use_.rss_bytes_peak, use->rss_bytes_peak);
  }
}

bool ChildProcess::NumberIsOurs() const {
  if (reaped_) {
    return false;
  }
  const Result<WaitAnswer> answer = WaitForChild(pidfd_.borrow(), WEXITED | WNOHANG | WNOWAIT);
  return answer && answer->state != WaitAnswer::State::kNotOurs;
}

Status ChildProcess::Reap() {
  if (reaped_) {
    return {};
  }
  BH_TRY(Observe());
  const WaitAnswer answer = BH_TRY(WaitForChild(pidfd_.borrow(), WEXITED | WNOHANG));
  if (answer.state == WaitAnswer::State::kExited) {
    use_.cpu = CpuTime(answer.usage);
    const std::uint64_t accounted = RssBytesPeak(answer.usage);
    if (accounted > host_rss_bytes_peak_) {
      use_.rss_bytes_peak = std::max(use_.rss_bytes_peak, accounted);
    }
  }
  reaped_ = true;
  return {};
}

Result<bool> ChildProcess::WaitTreeGone(Deadline deadline) {
  if (!BH_TRY(cgroups_.KillAndWait(deadline))) {
    return false;
  }
  return group_.WaitGone(deadline);
}

}  // namespace bulkhead::process
