#include "worker/scratch.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "worker/mechanism_error.h"

namespace bulkhead::worker {
namespace {

// Files cost kernel memory that `size=` does not count: one per page of content is plenty, a floor
// keeps small file systems usable.
constexpr std::uint64_t kBytesPerInode = 4096;
constexpr std::uint64_t kInodesMin = 1024;

constexpr std::string_view kMechanism = "scratch";

Status WriteText(const char* path, const std::string& text) {
  const UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  if (!file.valid() || write(file.get(), text.data(), text.size()) < 0) {
    return MechanismFailed(kMechanism, "write", path, errno);
  }
  return {};
}

Status EnterOwnNameSpaces() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    return MechanismFailed(kMechanism, "unshare", "user and mount name space", errno);
  }
  // Everybody stays who they are; the kernel wants setgroups(2) given up first.
  BH_TRY(WriteText("/proc/self/setgroups", "deny"));
  BH_TRY(WriteText("/proc/self/uid_map", fmt::format("{} {} 1", user, user)));
  return WriteText("/proc/self/gid_map", fmt::format("{} {} 1", group, group));
}

Status Configure(BorrowedFd context, const char* key, const std::string& value) {
  if (fsconfig(context.get(), FSCONFIG_SET_STRING, key, value.c_str(), 0) != 0) {
    return MechanismFailed(kMechanism, "fsconfig", key, errno);
  }
  return {};
}

Result<UniqueFd> MountTmpfs(std::uint64_t bytes) {
  const UniqueFd context(fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!context.valid()) {
    return MechanismFailed(kMechanism, "fsopen", "tmpfs", errno);
  }
  BH_TRY(Configure(context.borrow(), "size", std::to_string(bytes)));
  BH_TRY(Configure(context.borrow(), "nr_inodes",
                   std::to_string(std::max(bytes / kBytesPerInode, kInodesMin))));
  BH_TRY(Configure(context.borrow(), "mode", "0700"));
  if (fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return MechanismFailed(kMechanism, "fsconfig", "create", errno);
  }
  UniqueFd root(fsmount(context.get(), FSMOUNT_CLOEXEC,
                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
  if (!root.valid()) {
    return MechanismFailed(kMechanism, "fsmount", "tmpfs", errno);
  }
  return root;
}

}  // namespace

Result<UniqueFd> MakeScratch(std::uint64_t bytes) {
  Result<UniqueFd> root = MountTmpfs(bytes);
  if (root || root.error().sys_errno != EPERM) {
    return root;
  }
  BH_TRY(EnterOwnNameSpaces());
  return MountTmpfs(bytes);
}

}  // namespace bulkhead::worker
