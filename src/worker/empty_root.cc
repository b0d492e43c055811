#include "worker/empty_root.h"

#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_error.h"

namespace bulkhead::worker {
namespace {

// Any directory will do that exists everywhere; launchers need this one themselves.
constexpr char kMountPoint[] = "/proc";

tl::unexpected<Error> Failed(std::string_view call, int sys_errno) {
  Error error = ErrnoError(ErrorCode::kLaunch, call, "", sys_errno);
  error.reason = "empty-root";
  return Fail(std::move(error));
}

}  // namespace

Result<std::string_view> EnterEmptyRoot() {
  if (mount("bulkhead", kMountPoint, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
            "size=4k,nr_inodes=2,mode=0555") != 0) {
    return Failed("mount tmpfs", errno);
  }
  if (chdir(kMountPoint) != 0) {
    return Failed("chdir", errno);
  }
  // With both arguments the same the old root ends up on top of the new one, pivot_root(2).
  if (syscall(SYS_pivot_root, ".", ".") == 0) {
    if (umount2(".", MNT_DETACH) != 0) {
      return Failed("umount2", errno);
    }
    return chdir("/") == 0 ? Result<std::string_view>("empty-root") : Failed("chdir", errno);
  }
  if (errno != EINVAL) {
    return Failed("pivot_root", errno);
  }
  if (chroot(".") != 0) {
    return Failed("chroot", errno);
  }
  return "empty-root-by-chroot";
}

}  // namespace bulkhead::worker
