#include "process/namespaces.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace bulkhead::process {
namespace {

// Of the machine's resources or the caller's, not of what is allowed.
bool MayWorkLater(int sys_errno) {
  return sys_errno == EAGAIN || sys_errno == ENOMEM || sys_errno == EMFILE || sys_errno == ENFILE;
}

bool MayLimitOthers() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> words{};
  return syscall(SYS_capget, &header, words.data()) == 0 &&
         (words[0].effective & 1U << CAP_SYS_RESOURCE) != 0;
}

NamespaceMode Next(NamespaceMode mode) {
  return mode == NamespaceMode::kDirect ? NamespaceMode::kOwnUser : NamespaceMode::kNone;
}

}  // namespace

std::uint64_t CloneFlags(NamespaceMode mode) {
  constexpr std::uint64_t kAlways =
      CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  switch (mode) {
    case NamespaceMode::kDirect:
      return kAlways;
    case NamespaceMode::kOwnUser:
      return kAlways | CLONE_NEWUSER;
    case NamespaceMode::kNone:
      return 0;
  }
  return 0;
}

OuterWalls WallsOf(NamespaceMode mode) {
  OuterWalls walls;
  if (mode == NamespaceMode::kNone) {
    return walls;
  }
  walls.mechanisms = {"pid-namespace", "mount-namespace", "network-namespace", "ipc-namespace",
                      "uts-namespace"};
  walls.own_mounts = true;
  if (mode == NamespaceMode::kOwnUser) {
    walls.mechanisms.emplace_back("user-namespace");
    walls.own_user = true;
  }
  // Init stays who it is, so that killing works; limits of another user's process need the
  // capability.
  walls.may_change_user = !walls.own_user && geteuid() == 0 && MayLimitOthers();
  return walls;
}

NamespaceMode NamespaceLadder::mode() const {
  const std::lock_guard lock(mutex_);
  return mode_;
}

std::string NamespaceLadder::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

void NamespaceLadder::MarkProven(NamespaceMode mode) {
  const std::lock_guard lock(mutex_);
  if (mode == mode_) {
    proven_ = true;
  }
}

bool NamespaceLadder::StepDown(NamespaceMode mode, const Error& error) {
  const std::lock_guard lock(mutex_);
  if (proven_ || MayWorkLater(error.sys_errno)) {
    return false;
  }
  if (mode == mode_) {  // else another thread did it already
    mode_ = Next(mode);
    why_ = error.message;
  }
  return true;
}

}  // namespace bulkhead::process
