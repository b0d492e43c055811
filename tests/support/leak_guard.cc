#include "support/leak_guard.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace bulkhead::test {
namespace {

// A joined thread leaves /proc a moment after the join.
constexpr std::chrono::milliseconds kThreadExitBound{5000};

std::set<pid_t> Children() {
  std::set<pid_t> children;
  for (const ProcessView& process : AllProcesses()) {
    if (process.parent == getpid()) {
      children.insert(process.pid);
    }
  }
  return children;
}

// Lines of mountinfo, one for each mount this process sees.
std::set<std::string> Mounts() {
  std::set<std::string> mounts;
  std::ifstream info("/proc/self/mountinfo");
  for (std::string line; std::getline(info, line);) {
    mounts.insert(line);
  }
  return mounts;
}

std::vector<std::string> CgroupMounts() {
  std::vector<std::string> mounts;
  for (const std::string& line : Mounts()) {
    if (line.find(" - cgroup") == std::string::npos) {
      continue;
    }
    std::istringstream fields(line);
    std::string skipped;
    std::string mount_point;
    fields >> skipped >> skipped >> skipped >> skipped >> mount_point;
    mounts.push_back(mount_point);
  }
  return mounts;
}

void FindCgroups(std::vector<std::string>& leaks) {
  const std::string ours = "bulkhead-" + std::to_string(getpid()) + "-";
  for (const std::string& mount : CgroupMounts()) {
    std::error_code gone;  // other programs make and remove groups at any time
    auto entry = std::filesystem::recursive_directory_iterator(
        mount, std::filesystem::directory_options::skip_permission_denied, gone);
    for (; !gone && entry != std::filesystem::recursive_directory_iterator();
         entry.increment(gone)) {
      if (entry->path().filename().string().starts_with(ours)) {
        leaks.push_back("cgroup " + entry->path().string());
      }
    }
  }
}

// On the scale of ProcessView::start_time.
std::uint64_t TicksSinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * per_second +
         static_cast<std::uint64_t>(now.tv_nsec) * per_second / 1'000'000'000U;
}

// The thread sanitizer starts a thread of its own together with the program's first one: let that
// happen before the threads are counted.
std::size_t ThreadCountBefore() {
  std::string own_entry;
  std::thread([&] { own_entry = "/proc/self/task/" + std::to_string(gettid()); }).join();
  Eventually(kThreadExitBound, [&] { return access(own_entry.c_str(), F_OK) != 0; });
  return ThreadCount();
}

}  // namespace

LeakGuard::LeakGuard()
    : children_(Children()),
      descriptors_(OpenDescriptors()),
      threads_(ThreadCountBefore()),
      mounts_(Mounts()) {}

void LeakGuard::NoteWorker(pid_t pid) {
  if (pid != 0) {
    workers_[pid] = TicksSinceBoot();
  }
}

// A number in use as a group or session is given to no new process. So if a later process has it
// as its own, nothing was left of the worker when it got it: a busy machine goes through all
// numbers in a minute.
bool LeakGuard::BelongsToWorker(const ProcessView& process, pid_t group_or_session) const {
  const auto worker = workers_.find(group_or_session);
  if (worker == workers_.end()) {
    return false;
  }
  const std::optional<ProcessView> leader = ViewProcess(group_or_session);
  return process.start_time <= worker->second || !leader || leader->start_time <= worker->second;
}

void LeakGuard::FindProcesses(std::vector<std::string>& leaks) const {
  for (const ProcessView& process : AllProcesses()) {
    const bool child = process.parent == getpid() && !children_.contains(process.pid);
    // A dead descendant waits for its reaper, which is not us.
    const bool member = !process.zombie() && (BelongsToWorker(process, process.group) ||
                                              BelongsToWorker(process, process.session));
    if (child || member) {
      leaks.push_back("process " + std::to_string(process.pid) + " (" + process.name +
                      ") in state " + process.state);
    }
  }
}

void LeakGuard::FindDescriptors(std::vector<std::string>& leaks) const {
  for (const auto& [fd, target] : OpenDescriptors()) {
    const auto before = descriptors_.find(fd);
    if (before == descriptors_.end() || before->second != target) {
      leaks.push_back("descriptor " + std::to_string(fd) + " -> " + target);
    }
  }
  for (const auto& [fd, target] : descriptors_) {
    if (!OpenDescriptors().contains(fd)) {
      leaks.push_back("descriptor " + std::to_string(fd) + " -> " + target +
                      " was closed by somebody");
    }
  }
}

void LeakGuard::FindStaging(std::vector<std::string>& leaks) const {
  for (const std::string& directory : directories_) {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(directory, gone)) {
      if (entry.path().filename().string().starts_with(".bulkhead-staging-")) {
        leaks.push_back("staging " + entry.path().string());
      }
    }
  }
}

void LeakGuard::FindMounts(std::vector<std::string>& leaks) const {
  for (const std::string& mount : Mounts()) {
    if (!mounts_.contains(mount)) {
      leaks.push_back("mount " + mount);
    }
  }
}

std::vector<std::string> LeakGuard::Leaks() const {
  std::vector<std::string> leaks;
  FindProcesses(leaks);
  FindDescriptors(leaks);
  FindStaging(leaks);
  FindMounts(leaks);
  FindCgroups(leaks);
  if (!Eventually(kThreadExitBound, [this] { return ThreadCount() <= threads_; })) {
    leaks.push_back(std::to_string(ThreadCount()) + " threads, " + std::to_string(threads_) +
                    " before");
  }
  return leaks;
}

std::vector<std::string> LedgerFaults(const Snapshot& snapshot) {
  const WorkerLedger& ledger = snapshot.workers;
  std::vector<std::string> faults;
  const auto require = [&faults](bool holds, const char* rule) {
    if (!holds) {
      faults.emplace_back(rule);
    }
  };
  require(ledger.live_workers == 0, "live_workers is not 0");
  require(ledger.live_protocol_tasks == 0, "live_protocol_tasks is not 0");
  require(ledger.pending_root_leases == 0, "pending_root_leases is not 0");
  require(snapshot.active_runs == 0, "active_runs is not 0");
  require(snapshot.cleanup_pending == 0, "cleanup is pending");
  require(ledger.spawned == ledger.reaped, "spawned != reaped");
  require(ledger.forced <= ledger.reaped, "forced > reaped");
  require(ledger.cancel_sent <= ledger.spawned, "more than one Cancel per run");
  require(ledger.grace_expired <= ledger.forced, "a grace expired without force");
  return faults;
}

}  // namespace bulkhead::test
