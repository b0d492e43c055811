#include "cli/machine_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <memory>

#include "base/errno_error.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "process/launcher.h"
#include "process/worker_cgroups.h"

namespace bulkhead::cli {
namespace {

constexpr int kKernelMajorMin = 5;
constexpr int kKernelMinorMin = 10;
constexpr std::string_view kKernelFix = "boot a kernel of version 5.10 or later";
// Descriptors that one run holds in the parent, and room for the caller's own.
constexpr rlim_t kDescriptorsMin = 256;

MachineCheck Ok(std::string name, std::string finding) {
  return {std::move(name), CheckState::kOk, std::move(finding), {}, {}};
}

// A system call without a wrapper in the C library; -1 and errno as usual.
template <class... Arguments>
long Call(long number, Arguments... arguments) {
  return syscall(number, arguments...);
}

// First line of a small file, empty if it cannot be read.
std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

MachineCheck CheckKernel() {
  utsname name{};
  uname(&name);
  const std::string_view release = static_cast<const char*>(name.release);
  int major = 0;
  int minor = 0;
  const char* const end = std::to_address(release.end());
  const auto first = std::from_chars(std::to_address(release.begin()), end, major);
  if (first.ptr != end) {
    std::from_chars(first.ptr + 1, end, minor);
  }
  const std::string finding = fmt::format("{} {} on {}", static_cast<const char*>(name.sysname),
                                          release, static_cast<const char*>(name.machine));
  if (major > kKernelMajorMin || (major == kKernelMajorMin && minor >= kKernelMinorMin)) {
    return Ok("kernel", finding);
  }
  return {"kernel", CheckState::kMissing, finding, "Bulkhead relies on features of Linux 5.10",
          std::string(kKernelFix)};
}

MachineCheck CheckSeccomp() {
  const unsigned action = SECCOMP_RET_KILL_PROCESS;
  if (Call(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0U, &action) == 0) {
    return Ok("seccomp", "system call filters are available");
  }
  return {
      "seccomp", CheckState::kMissing, fmt::format("not available: {}", ErrnoText(errno)),
      "a worker could make any system call",
      "boot a kernel with CONFIG_SECCOMP_FILTER; in a container, allow the seccomp system call"};
}

MachineCheck CheckLandlock() {
  const long abi = Call(SYS_landlock_create_ruleset, nullptr, std::size_t{0},
                        unsigned{LANDLOCK_CREATE_RULESET_VERSION});
  if (abi > 0) {
    return Ok("landlock", fmt::format("ABI {}", abi));
  }
  return {"landlock", CheckState::kDegraded, fmt::format("not available: {}", ErrnoText(errno)),
          "files are protected by the system call filter alone",
          "boot a kernel with CONFIG_SECURITY_LANDLOCK and lsm=landlock,... on its command line"};
}

std::string NamespaceFix() {
  if (FirstLine("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") {
    return "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  }
  if (FirstLine("/proc/sys/kernel/unprivileged_userns_clone") == "0") {
    return "sysctl -w kernel.unprivileged_userns_clone=1";
  }
  if (FirstLine("/proc/sys/user/max_user_namespaces") == "0") {
    return "sysctl -w user.max_user_namespaces=15000";
  }
  return "in a container, allow clone and mount with new namespaces, or give it CAP_SYS_ADMIN";
}

MachineCheck CheckNamespaces() {
  const auto walls = process::MakeLauncher()->Walls(true);
  if (walls && walls->own_mounts) {
    return Ok("namespaces", fmt::format("workers get their own{}: {}",
                                        walls->own_user ? ", by way of a user namespace" : "",
                                        fmt::join(walls->mechanisms, ", ")));
  }
  return {"namespaces", CheckState::kDegraded,
          walls ? walls->no_namespaces_because : walls.error().message,
          "workers are held by Landlock and the system call filter alone; --sandbox strict refuses "
          "to run",
          NamespaceFix()};
}

MachineCheck CheckCgroup() {
  process::CgroupPool pool;
  const auto mechanism = pool.Mechanism();
  if (mechanism && !mechanism->empty()) {
    return Ok("cgroup", fmt::format("workers get one of their own ({})", *mechanism));
  }
  return {"cgroup", CheckState::kDegraded,
          mechanism ? "none that can be written" : mechanism.error().message,
          "where there are no namespaces either, a worker's tree is killed by process group alone",
          "systemd-run --user --scope -p Delegate=yes bulkhead ..."};
}

// What a leaf of the pool limits; empty if it has none.
std::string LimitsOf(process::CgroupPool& pool) {
  const auto leaf = pool.Take();
  if (!leaf || *leaf == nullptr) {
    return {};
  }
  const process::CgroupControllers controllers = (*leaf)->limiter().controllers();
  return controllers.memory && controllers.tasks ? "memory, pids"
         : controllers.memory                    ? "memory"
         : controllers.tasks                     ? "pids"
                                                 : "";
}

MachineCheck CheckCgroupLimits() {
  process::CgroupPools pools;
  if (pools.tree.LimitsAtBirth().value_or(false)) {
    return Ok("cgroup-limits",
              fmt::format("workers are limited by version 2: {}", LimitsOf(pools.tree)));
  }
  std::vector<std::string> asked;
  for (auto* pool : {&pools.memory, &pools.tasks}) {
    if (const std::string limits = LimitsOf(*pool); !limits.empty()) {
      asked.push_back("--require cgroup-" + limits);
    }
  }
  const std::string finding =
      asked.empty()
          ? std::string("no cgroup with the controller memory or pids can be made")
          : fmt::format("by version 1 only, where it is asked for: {}", fmt::join(asked, ", "));
  return {"cgroup-limits", CheckState::kDegraded, finding,
          asked.empty() ? "memory files are not bounded, and a death for memory is a bare SIGKILL"
                        : "unasked, memory files are not bounded and a death for memory is a bare "
                          "SIGKILL; asked, each start takes some milliseconds longer",
          "with cgroup version 2: systemd-run --user --pipe -p Delegate=yes -p "
          "DelegateSubgroup=host bulkhead ..."};
}

MachineCheck CheckCall(std::string name, long result, std::string_view cost) {
  if (result >= 0) {
    const UniqueFd close_it(static_cast<int>(result));
    return Ok(std::move(name), "available");
  }
  return {std::move(name), CheckState::kMissing, fmt::format("not available: {}", ErrnoText(errno)),
          std::string(cost), std::string(kKernelFix)};
}

void CheckCalls(std::vector<MachineCheck>& checks) {
  checks.push_back(CheckCall("pidfd", Call(SYS_pidfd_open, getpid(), 0U),
                             "the end of a worker cannot be waited for"));
  checks.push_back(CheckCall("memfd",
                             memfd_create("bulkhead-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                             "modules cannot be sealed"));
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH;
  checks.push_back(CheckCall("openat2", Call(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how)),
                             "directories cannot be granted safely"));
}

MachineCheck CheckDescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string finding =
      fmt::format("{} open files, {} at most", limit.rlim_cur, limit.rlim_max);
  if (limit.rlim_cur >= kDescriptorsMin) {
    return Ok("open-files", finding);
  }
  return {"open-files", CheckState::kDegraded, finding, "few runs fit side by side",
          fmt::format("ulimit -n {}", kDescriptorsMin)};
}

}  // namespace

std::string_view CheckStateName(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kDegraded:
      return "degraded";
    case CheckState::kMissing:
      return "missing";
  }
  return "missing";
}

std::vector<MachineCheck> CheckMachine() {
  std::vector<MachineCheck> checks;
  checks.push_back(CheckKernel());
  checks.push_back(CheckSeccomp());
  checks.push_back(CheckLandlock());
  checks.push_back(CheckNamespaces());
  checks.push_back(CheckCgroup());
  checks.push_back(CheckCgroupLimits());
  CheckCalls(checks);
  checks.push_back(CheckDescriptorLimit());
  return checks;
}

}  // namespace bulkhead::cli
