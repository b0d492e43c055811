#include "worker/landlock.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "worker/mechanism_error.h"

namespace bulkhead::worker {
namespace {

// The build machine's header may be older than the running kernel, so newer parts of the interface
// are spelled out.
constexpr std::uint64_t kRefer = 1ULL << 13;        // ABI 2: rename and link between directories
constexpr std::uint64_t kTruncate = 1ULL << 14;     // ABI 3
constexpr std::uint64_t kIoctlDevice = 1ULL << 15;  // ABI 5
constexpr std::uint64_t kBindAndConnectTcp = 3;     // ABI 4
constexpr std::uint64_t kAbstractSocketsAndSignals = 3;  // ABI 6
constexpr std::uint64_t kAccessOfFirstAbi = (1ULL << 13) - 1;

struct RulesetAttribute {
  std::uint64_t access_fs = 0;
  std::uint64_t access_net = 0;
  std::uint64_t scoped = 0;
};

std::uint64_t FileAccessKnownTo(int abi) {
  return kAccessOfFirstAbi | (abi >= 2 ? kRefer : 0) | (abi >= 3 ? kTruncate : 0) |
         (abi >= 5 ? kIoctlDevice : 0);
}

// An older kernel refuses a structure longer than it knows.
std::size_t AttributeBytesKnownTo(int abi) {
  if (abi >= 6) {
    return sizeof(RulesetAttribute);
  }
  return abi >= 4 ? offsetof(RulesetAttribute, scoped) : offsetof(RulesetAttribute, access_net);
}

constexpr std::uint64_t kReadAccess = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
// No devices, sockets or pipes: a guest has no call to make them.
constexpr std::uint64_t kWriteAccess =
    kReadAccess | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SYM | kRefer | kTruncate;

tl::unexpected<Error> Failed(std::string_view call) {
  return MechanismFailed("landlock", call, "", errno);
}

Status AddRule(BorrowedFd ruleset, const LandlockRule& rule, int abi) {
  landlock_path_beneath_attr attribute{};
  attribute.allowed_access = (rule.writable ? kWriteAccess : kReadAccess) & FileAccessKnownTo(abi);
  attribute.parent_fd = rule.directory.get();
  if (syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &attribute, 0) !=
      0) {
    return Failed("landlock_add_rule");
  }
  return {};
}

}  // namespace

Result<int> RestrictSelf(const std::vector<LandlockRule>& rules) {
  const int abi = static_cast<int>(
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
  if (abi < 1) {
    return Failed("landlock_create_ruleset");
  }
  const RulesetAttribute attribute{FileAccessKnownTo(abi), kBindAndConnectTcp,
                                   kAbstractSocketsAndSignals};
  const UniqueFd ruleset(static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &attribute, AttributeBytesKnownTo(abi), 0)));
  if (!ruleset.valid()) {
    return Failed("landlock_create_ruleset");
  }
  for (const LandlockRule& rule : rules) {
    BH_TRY(AddRule(ruleset.borrow(), rule, abi));
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return Failed("landlock_restrict_self");
  }
  return abi;
}

}  // namespace bulkhead::worker
