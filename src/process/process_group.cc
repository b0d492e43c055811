#include "process/process_group.h"

#include <signal.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>

#include "base/errno_error.h"
#include "base/proc_stat.h"
#include "process/pidfd.h"

namespace bulkhead::process {
namespace {

// nullopt: not there any more, or not readable, hence not ours.
std::optional<ProcStat> StatOf(const std::string& name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) {
    return std::nullopt;
  }
  const Result<ProcStat> stat = ReadProcStat(pid);
  return stat ? std::optional(*stat) : std::nullopt;
}

}  // namespace

Status ProcessGroup::Kill(Leader state) const {
  const GroupAnswer answer = BH_TRY(SignalGroup(pidfd_, SIGKILL));
  if (answer != GroupAnswer::kUnsupported || state == Leader::kReaped) {
    return {};
  }
  if (killpg(leader_.pid, SIGKILL) != 0 && errno != ESRCH) {
    return Fail(ErrnoError(ErrorCode::kIo, "killpg", "", errno));
  }
  return {};
}

Result<bool> ProcessGroup::WaitGone(Deadline deadline) const {
  while (BH_TRY(Exists())) {
    const Members members = BH_TRY(OpenMembers());
    // Zombies keep the group in existence until their own parents collect them; nothing of them
    // runs any more.
    if (members.pidfds.empty() || members.number_reissued) {
      return true;
    }
    // A group that still exists has kept its number all the while, so the members found are the
    // right ones.
    if (BH_TRY(SignalGroup(pidfd_, SIGKILL)) == GroupAnswer::kReached) {
      for (const UniqueFd& pidfd : members.pidfds) {
        BH_TRY(SignalProcess(pidfd.borrow(), SIGKILL));
      }
    }
    if (!BH_TRY(WaitAllExited(members.pidfds, deadline))) {
      return false;
    }
  }
  return true;
}

Result<bool> ProcessGroup::Exists() const {
  switch (BH_TRY(SignalGroup(pidfd_, 0))) {
    case GroupAnswer::kReached:
      return true;
    case GroupAnswer::kEmpty:
      return false;
    case GroupAnswer::kUnsupported:
      return killpg(leader_.pid, 0) == 0 || errno != ESRCH;
  }
  return true;
}

Result<ProcessGroup::Members> ProcessGroup::OpenMembers() const {
  std::error_code failed;
  std::filesystem::directory_iterator proc("/proc", failed);
  Members members;
  for (; !failed && proc != std::filesystem::directory_iterator(); proc.increment(failed)) {
    const std::string name = proc->path().filename();
    const std::optional<ProcStat> stat = StatOf(name);
    if (!stat || (stat->group != leader_.pid && stat->session != leader_.pid)) {
      continue;
    }
    if (stat->pid == leader_.pid && stat->start_time != leader_.start_time) {
      members.number_reissued = true;
      continue;
    }
    Result<UniqueFd> pidfd = OpenPidfd(stat->pid);
    if (!pidfd) {
      if (pidfd.error().code == ErrorCode::kNotFound) {
        continue;
      }
      return Fail(std::move(pidfd).error());
    }
    const std::optional<ProcStat> again = StatOf(name);
    if (again && again->identity() == stat->identity() && !BH_TRY(HasExited(pidfd->borrow()))) {
      members.pidfds.push_back(*std::move(pidfd));
    }
  }
  if (failed) {
    return Fail(ErrnoError("readdir", "/proc", failed.value()));
  }
  return members;
}

}  // namespace bulkhead::process
