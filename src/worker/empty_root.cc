#include "worker/empty_root.h"

#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "worker/mechanism_error.h"

namespace bulkhead::worker {
namespace {

// Any directory will do that exists everywhere; launchers need this one themselves.
constexpr char kMountPoint[] = "/proc";

tl::unexpected<Error> Failed(std::string_view call) {
  return MechanismFailed("empty-root", call, "", errno);
}

}  // namespace

Result<std::string_view> EnterEmptyRoot() {
  if (mount("bulkhead", kMountPoint, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
            "size=4k,nr_inodes=2,mode=0555") != 0) {
    return Failed("mount tmpfs");
  }
  if (chdir(kMountPoint) != 0) {
    return Failed("chdir");
  }
  // With both arguments the same the old root ends up on top of the new one, pivot_root(2).
  if (syscall(SYS_pivot_root, ".", ".") == 0) {
    if (umount2(".", MNT_DETACH) != 0) {
      return Failed("umount2");
    }
    return chdir("/") == 0 ? Result<std::string_view>("empty-root") : Failed("chdir");
  }
  if (errno != EINVAL) {
    return Failed("pivot_root");
  }
  if (chroot(".") != 0) {
    return Failed("chroot");
  }
  return "empty-root-by-chroot";
}

}  // namespace bulkhead::worker
