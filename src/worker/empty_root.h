// Takes every path away from a worker that has a mount namespace of its own: its root becomes an
// empty file system that cannot be written, and everything that was mounted is gone.
#pragma once

#include <bulkhead/result.h>

#include <string_view>

namespace bulkhead::worker {

// Returns the mechanism obtained: "empty-root", or "empty-root-by-chroot" where the present root is
// no mount of its own (an initramfs, a chroot) and can be left but not unmounted. Open descriptors
// keep working. kLaunch with reason "empty-root" and the errno. Call before other threads exist,
// with the rights of the namespace's user.
Result<std::string_view> EnterEmptyRoot();

}  // namespace bulkhead::worker
