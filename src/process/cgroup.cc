#include "process/cgroup.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>

#include "base/clock.h"
#include "base/errno_error.h"
#include "base/text_file.h"
#include "base/wait_set.h"
#include "process/pidfd.h"

namespace bulkhead::process {
namespace {

constexpr char kMembershipFile[] = "cgroup.procs";
constexpr char kEventsFile[] = "cgroup.events";  // version 2 only
constexpr mode_t kLeafMode = 0755;

// A process leaves its cgroup's count a moment after its exit is visible.
constexpr std::chrono::seconds kRemovalWaitMax{1};

constexpr CgroupMethod kMethods[] = {
    {CgroupKind::kV2, "cgroup-v2-kill", "cgroup.kill", nullptr, "", ""},
    {CgroupKind::kV2, "cgroup-v2-freeze", nullptr, "cgroup.freeze", "1", "0"},
    {CgroupKind::kV1Freezer, "cgroup-v1-freezer", nullptr, "freezer.state", "FROZEN", "THAWED"},
    {CgroupKind::kV1Pids, "cgroup-v1-pids", nullptr, "pids.max", "0", "max"},
};

constexpr CgroupMethod kMemoryMethods[] = {
    {CgroupKind::kV1Memory, "cgroup-v1-memory", nullptr, nullptr, "", ""},
};

}  // namespace

std::span<const CgroupMethod> CgroupMethods() {
  return kMethods;
}

std::span<const CgroupMethod> V1MemoryMethods() {
  return kMemoryMethods;
}

std::span<const CgroupMethod> V1PidsMethods() {
  return std::span(kMethods).last(1);
}

Result<CgroupLeaf::Files> CgroupLeaf::OpenLocked(const std::string& path) {
  Files files;
  files.directory.Reset(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!files.directory.valid()) {
    return Fail(ErrnoError("open", path, errno));
  }
  if (flock(files.directory.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(ErrnoError("flock", path, errno));
  }
  // Fails if an adopter removed it between the open and the lock.
  files.membership.Reset(openat(files.directory.get(), kMembershipFile, O_RDWR | O_CLOEXEC));
  if (!files.membership.valid()) {
    return Fail(ErrnoError("open", path + "/" + kMembershipFile, errno));
  }
  return files;
}

Result<std::unique_ptr<CgroupLeaf>> CgroupLeaf::Create(const CgroupMethod& method,
                                                       std::string path) {
  if (mkdir(path.c_str(), kLeafMode) != 0) {
    return Fail(ErrnoError("mkdir", path, errno));
  }
  Result<Files> files = OpenLocked(path);
  if (!files) {
    rmdir(path.c_str());
    return Fail(std::move(files).error());
  }
  std::unique_ptr<CgroupLeaf> leaf(new CgroupLeaf(method, std::move(path), *std::move(files)));
  const char* needed = method.kill_file != nullptr ? method.kill_file : method.hold_file;
  if (needed != nullptr && faccessat(leaf->directory_.get(), needed, W_OK, 0) != 0) {
    return Fail(ErrnoError(ErrorCode::kUnsupported, "access", leaf->path_ + "/" + needed, errno));
  }
  return leaf;
}

Result<std::unique_ptr<CgroupLeaf>> CgroupLeaf::Adopt(const CgroupMethod& method,
                                                      std::string path) {
  Files files = BH_TRY(OpenLocked(path));
  return std::unique_ptr<CgroupLeaf>(new CgroupLeaf(method, std::move(path), std::move(files)));
}

CgroupLeaf::~CgroupLeaf() {
  if (rmdir(path_.c_str()) != 0) {
    if (errno == EBUSY) {
      WaitUnpopulated();
    }
    rmdir(path_.c_str());  // a second time also for want of memory
  }
}

bool CgroupLeaf::usable() const {
  return faccessat(directory_.get(), kMembershipFile, W_OK, 0) == 0;
}

Status CgroupLeaf::Kill(pid_t dying) {
  const std::vector<pid_t> pids = BH_TRY(Pids());
  if (std::all_of(pids.begin(), pids.end(), [&](pid_t pid) { return pid == dying; })) {
    return {};
  }
  killed_ = true;
  Status killed = method_->kill_file != nullptr
                      ? WriteTextFile(directory(), method_->kill_file, "1")
                      : KillOneByOne();
  if (!killed) {
    killed.error().message =
        fmt::format("{} in {}: {}", method_->name, path_, killed.error().message);
  }
  return killed;
}

Result<bool> CgroupLeaf::KillAndWait(Deadline deadline) {
  const MonotonicClock clock;
  for (;;) {
    if (BH_TRY(Pids()).empty()) {
      return true;
    }
    // Opened before the kill: then what is waited for is the whole exit, not only leaving the
    // cgroup.
    const std::vector<UniqueFd> processes = BH_TRY(OpenProcesses());
    BH_TRY(Kill());
    if (!BH_TRY(WaitAllExited(processes, deadline)) || deadline.PassedAt(clock.Now())) {
      return BH_TRY(Pids()).empty();
    }
  }
}

Result<std::string> CgroupLeaf::ReadMembership() const {
  if (method_->kind != CgroupKind::kV2) {
    return ReadTextFile(
        directory(),
        kMembershipFile);  // an open file may show version 1's list as it was a second ago
  }
  return ReadOpenTextFile(membership_.borrow(), path_);
}

Result<std::vector<pid_t>> CgroupLeaf::Pids() const {
  const std::string text = BH_TRY(ReadMembership());
  std::vector<pid_t> pids;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [next, error] = std::from_chars(at, end, pid);
    if (error != std::errc() || pid <= 0) {
      // 0 stands for a process of a pid namespace that is not below ours; a worker cannot get
      // there.
      return Fail(ErrorCode::kIo,
                  fmt::format("{}/{}: a member without a number", path_, kMembershipFile));
    }
    pids.push_back(pid);
    at = next + 1;  // behind the newline
  }
  return pids;
}

Result<std::vector<UniqueFd>> CgroupLeaf::OpenProcesses() const {
  std::vector<pid_t> pids;
  std::vector<UniqueFd> pidfds;
  for (const pid_t pid : BH_TRY(Pids())) {
    Result<UniqueFd> pidfd = OpenPidfd(pid);
    if (pidfd) {
      pids.push_back(pid);
      pidfds.push_back(*std::move(pidfd));
    } else if (pidfd.error().code != ErrorCode::kNotFound) {
      return Fail(std::move(pidfd).error());
    }
  }
  // A number that is still a member was one when it was opened: it cannot have changed hands and
  // come back here.
  const std::vector<pid_t> members = BH_TRY(Pids());
  for (std::size_t i = 0; i < pids.size(); ++i) {
    if (std::find(members.begin(), members.end(), pids[i]) == members.end()) {
      pidfds[i].Reset();
    }
  }
  std::erase_if(pidfds, [](const UniqueFd& pidfd) { return !pidfd.valid(); });
  return pidfds;
}

Status CgroupLeaf::KillOneByOne() const {
  if (method_->hold_file != nullptr) {
    BH_TRY(WriteTextFile(directory(), method_->hold_file, method_->hold));
  }
  Status killed;
  Result<std::vector<UniqueFd>> processes = OpenProcesses();
  if (!processes) {
    killed = Fail(processes.error());
  } else {
    for (const UniqueFd& process : *processes) {
      const Status signalled = SignalProcess(process.borrow(), SIGKILL);
      killed = killed ? signalled : killed;
    }
  }
  // Released in any case: the frozen do not die.
  if (method_->hold_file != nullptr) {
    BH_TRY(WriteTextFile(directory(), method_->hold_file, method_->release));
  }
  return killed;
}

void CgroupLeaf::WaitUnpopulated() const {
  constexpr int kChanged = 0;
  if (method_->kind != CgroupKind::kV2) {
    return;
  }
  const MonotonicClock clock;
  const Deadline deadline = Deadline::After(clock.Now(), kRemovalWaitMax);
  const UniqueFd events(openat(directory_.get(), kEventsFile, O_RDONLY | O_CLOEXEC));
  WaitSet set;
  set.Add(events.borrow(), POLLPRI, kChanged);
  char text[256];
  for (bool waiting = events.valid(); waiting;) {
    const ssize_t got = pread(events.get(), text, sizeof text, 0);
    const std::string_view now(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    waiting = now.find("populated 1") != std::string_view::npos &&
              set.Wait(clock, deadline).value_or(false);
  }
}

}  // namespace bulkhead::process
