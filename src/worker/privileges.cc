#include "worker/privileges.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "worker/mechanism_error.h"

namespace bulkhead::worker {
namespace {

// "nobody" and "nogroup": by convention the numbers that own nothing.
constexpr long kNobody = 65534;

constexpr std::uint32_t kFileRights = 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER;

using CapabilityWords = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

// The raw calls: the process has one thread, and the C library's own would ask all.
Result<bool> BecomeNobody() {
  if (syscall(SYS_setresgid, kNobody, kNobody, kNobody) != 0) {
    if (errno == EINVAL) {
      return false;  // not mapped in this user namespace
    }
    return MechanismFailed("unprivileged-user", "setresgid", "", errno);
  }
  if (syscall(SYS_setgroups, 0L, nullptr) != 0) {
    return MechanismFailed("unprivileged-user", "setgroups", "", errno);
  }
  if (syscall(SYS_setresuid, kNobody, kNobody, kNobody) != 0) {
    return MechanismFailed("unprivileged-user", "setresuid", "", errno);
  }
  return true;
}

}  // namespace

Result<std::vector<std::string>> GiveUpPrivileges(const PrivilegesRequest& request) {
  std::vector<std::string> mechanisms;
  if (request.become_nobody && BH_TRY(BecomeNobody())) {
    mechanisms.emplace_back("unprivileged-user");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  CapabilityWords words{};
  if (syscall(SYS_capget, &header, words.data()) != 0) {
    return MechanismFailed("capabilities", "capget", "", errno);
  }
  const std::uint32_t kept = request.keep_file_rights ? words[0].permitted & kFileRights : 0;
  words = {};
  words[0].permitted = words[0].effective = kept;
  if (syscall(SYS_capset, &header, words.data()) != 0) {
    return MechanismFailed("capabilities", "capset", "", errno);
  }
  mechanisms.emplace_back(kept == 0 ? "no-capabilities" : "file-capabilities-only");
  return mechanisms;
}

}  // namespace bulkhead::worker
