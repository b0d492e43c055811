#include "worker/seccomp_filter.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "worker/mechanism_error.h"

namespace bulkhead::worker {
namespace {

constexpr FilterProgram kLockdown = BuildFilter(LockdownFilter(DirectoryUse::kNone));
constexpr FilterProgram kLockdownReading = BuildFilter(LockdownFilter(DirectoryUse::kReadOnly));
constexpr FilterProgram kLockdownWriting = BuildFilter(LockdownFilter(DirectoryUse::kWritable));
constexpr FilterProgram kGuestPhase = BuildFilter(GuestPhaseFilter());

// The largest tables; those of less use are parts of them.
static_assert(NamesNoNumberTwice(LockdownFilter(DirectoryUse::kWritable).rules));
static_assert(NamesNoNumberTwice(GuestPhaseRules()));
static_assert(NarrowsEachOf(GuestPhaseRules(), BaseRules()));
static_assert(IsWholeAndAlive(kLockdown));
static_assert(IsWholeAndAlive(kLockdownReading));
static_assert(IsWholeAndAlive(kLockdownWriting));
static_assert(IsWholeAndAlive(kGuestPhase));
static_assert(kInstructionsMax <= BPF_MAXINSNS);

std::uint32_t ValueOf(Slot slot, const Bindings& bindings) {
  switch (slot) {
    case Slot::kOwnProcess:
      return static_cast<std::uint32_t>(bindings.own_process);
  }
  return 0;
}

}  // namespace

const FilterProgram& LockdownProgram(DirectoryUse directories) {
  switch (directories) {
    case DirectoryUse::kNone:
      return kLockdown;
    case DirectoryUse::kReadOnly:
      return kLockdownReading;
    case DirectoryUse::kWritable:
      return kLockdownWriting;
  }
  return kLockdown;
}

const FilterProgram& GuestPhaseProgram() {
  return kGuestPhase;
}

BpfCode Bind(const FilterProgram& program, const Bindings& bindings) {
  BpfCode code = program.code;
  for (const Patch& patch : program.patches) {
    code[patch.instruction].k = ValueOf(patch.slot, bindings);
  }
  return code;
}

Status InstallFilter(const FilterProgram& program, const Bindings& bindings) {
  BpfCode code = Bind(program, bindings);
  const sock_fprog filter{static_cast<unsigned short>(code.size()), &code[0]};
  const long result =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
  if (result != 0) {
    // A positive result names a thread that could not be bound.
    const int sys_errno = result > 0 ? EAGAIN : errno;
    return MechanismFailed("seccomp", "seccomp", "", sys_errno);
  }
  return {};
}

}  // namespace bulkhead::worker
