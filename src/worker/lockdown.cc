#include "worker/lockdown.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "worker/empty_root.h"
#include "worker/landlock.h"
#include "worker/mechanism_error.h"
#include "worker/privileges.h"
#include "worker/scratch.h"
#include "worker/seccomp_filter.h"

namespace bulkhead::worker {
namespace {

// Socket, event descriptors, module, standard streams, output, directories and their like: fewer
// than this.
constexpr std::uint64_t kDescriptorsMax = 96;
// A guest with directories may hold as many files open as its descriptor table has entries (1024),
// and the above.
constexpr std::uint64_t kDescriptorsWithDirectoriesMax = 1024 + kDescriptorsMax;

// Whatever the user's own mask allows, nothing a guest creates is writable for others.
constexpr mode_t kUmaskAtLeast = 022;

Status SetProcessAttribute(int option, unsigned long value, std::string_view mechanism) {
  if (prctl(option, value, 0UL, 0UL, 0UL) != 0) {
    return MechanismFailed(mechanism, "prctl", mechanism, errno);
  }
  return {};
}

DirectoryUse UseOf(const std::vector<DirectoryGrant>& directories) {
  if (directories.empty()) {
    return DirectoryUse::kNone;
  }
  const bool any_writable = std::any_of(directories.begin(), directories.end(),
                                        [](const DirectoryGrant& grant) { return grant.writable; });
  return any_writable ? DirectoryUse::kWritable : DirectoryUse::kReadOnly;
}

Result<int> RestrictFiles(const std::vector<DirectoryGrant>& directories) {
  std::vector<LandlockRule> rules;
  rules.reserve(directories.size());
  for (const DirectoryGrant& grant : directories) {
    rules.push_back({grant.directory.borrow(), grant.writable});
  }
  return RestrictSelf(rules);
}

// Paths, files, users.
Status GiveUpReach(const LockdownRequest& request, bool granted,
                   std::vector<std::string>& mechanisms) {
  if (request.own_mounts) {
    mechanisms.emplace_back(BH_TRY(EnterEmptyRoot()));
  }
  const int landlock_abi = BH_TRY(RestrictFiles(request.directories));
  mechanisms.push_back(fmt::format("landlock-abi-{}", landlock_abi));
  PrivilegesRequest privileges;
  // Files of granted directories are reached as who the parent is.
  privileges.become_nobody = request.may_change_user && request.directories.empty();
  privileges.keep_file_rights = granted && !request.own_user;
  for (std::string& mechanism : BH_TRY(GiveUpPrivileges(privileges))) {
    mechanisms.push_back(std::move(mechanism));
  }
  return {};
}

}  // namespace

Status GuestPhase::Enter(std::uint64_t data_bytes) const {
  BH_TRY(meter_.LimitDataGrowth(data_bytes));
  return sandbox_ ? InstallFilter(GuestPhaseProgram(), {getpid()}) : Status();
}

Result<LockedDown> LockDown(LockdownRequest request) {
  std::vector<std::string> mechanisms;
  const bool granted = !request.directories.empty();
  if (request.scratch_bytes != 0) {
    UniqueFd scratch = BH_TRY(MakeScratch(request.scratch_bytes));
    request.directories.push_back({std::move(scratch), "/tmp", true});
    mechanisms.emplace_back("scratch");
  }
  const DirectoryUse directories = UseOf(request.directories);
  request.limits.descriptors_max =
      directories == DirectoryUse::kNone ? kDescriptorsMax : kDescriptorsWithDirectoriesMax;
  GuestPhase guest_phase(BH_TRY(MemoryMeter::Open()), request.sandbox);
  BH_TRY(ApplyResourceLimits(request.limits));
  mechanisms.emplace_back("rlimits");
  BH_TRY(SetProcessAttribute(PR_SET_NO_NEW_PRIVS, 1, "no-new-privs"));
  mechanisms.emplace_back("no-new-privs");
  umask(umask(kUmaskAtLeast) | kUmaskAtLeast);
  if (request.sandbox) {
    BH_TRY(GiveUpReach(request, granted, mechanisms));
  }
  BH_TRY(SetProcessAttribute(PR_SET_DUMPABLE, 0, "not-dumpable"));
  mechanisms.emplace_back("not-dumpable");
  if (request.sandbox) {
    BH_TRY(InstallFilter(LockdownProgram(directories), {getpid()}));
    mechanisms.emplace_back("seccomp");
  }
  return LockedDown{std::move(mechanisms), std::move(request.directories), std::move(guest_phase)};
}

}  // namespace bulkhead::worker
