#include "process/cgroup_pool.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/directory_names.h"
#include "base/random_id.h"
#include "base/text_file.h"

namespace bulkhead::process {
namespace {

constexpr std::string_view kLeafNamePrefix = "bulkhead-";

// Idle leaves kept: more than any host runs workers at once would only hold descriptors.
constexpr std::size_t kIdleLeavesMax = 64;

// Keeps several pools of one process apart.
constexpr std::size_t kOwnerIdBytes = 4;

// Time for everything that dead owners left; the rest waits for the next start.
constexpr std::chrono::milliseconds kJanitorBudget{500};

// The mark by which service managers say that the cgroups below are their user's own business.
bool IsDelegated(BorrowedFd directory) {
  char value = 0;
  return fgetxattr(directory.get(), "user.delegate", &value, 1) == 1 && value == '1';
}

void RemoveAbandoned(const CgroupMethod& method, const std::string& directory) {
  const MonotonicClock clock;
  const Deadline deadline = Deadline::After(clock.Now(), kJanitorBudget);
  const auto names = NamesIn(BorrowedFd(AT_FDCWD), directory.c_str(), directory);
  if (!names) {
    return;
  }
  for (const std::string& name : *names) {
    std::string path = fmt::format("{}/{}", directory, name);
    if (!IsLeafOfBulkhead(path)) {
      continue;
    }
    const auto leaf = CgroupLeaf::Adopt(method, std::move(path));
    if (leaf) {
      // Best effort: what cannot be killed now is found again at the next start.
      (*leaf)->KillAndWait(deadline).value_or(false);
    }
  }
}

Result<std::vector<CgroupLocation>> Locations() {
  const Result<std::string> own = ReadTextFile("/proc/self/cgroup");
  const Result<std::string> mounts = ReadTextFile("/proc/self/mountinfo");
  for (const Result<std::string>* text : {&own, &mounts}) {
    if (!*text && text->error().code == ErrorCode::kResourceExhausted) {
      return Fail(text->error());  // says nothing about the machine: ask again next time
    }
  }
  return own && mounts ? FindCgroupLocations(*own, *mounts) : std::vector<CgroupLocation>();
}

struct Place {
  CgroupLocation location;
  bool limits = false;  // leaves have controllers there, of version 2
};

// Version 2: where leaves have controllers, if there is such a place. A cgroup that processes are
// in gives none to those below, so that whoever is delegated a subtree is put below its top
// (DelegateSubgroup= of systemd): leaves go beside us then.
Place Offering(const CgroupLocation& location) {
  if (location.kind != CgroupKind::kV2) {
    return {location, false};
  }
  const std::string above = std::filesystem::path(location.directory).parent_path().string();
  for (const std::string& directory : {location.directory, above}) {
    const UniqueFd opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool ours = directory == location.directory || IsDelegated(opened.borrow());
    if (opened.valid() && ours && OfferControllers(opened.borrow()).any()) {
      return {{location.kind, directory}, true};
    }
  }
  return {location, false};
}

}  // namespace

bool IsLeafOfBulkhead(const std::string& directory) {
  return std::filesystem::path(directory).filename().string().starts_with(kLeafNamePrefix);
}

Result<std::unique_ptr<CgroupLeaf>> CgroupPool::Take() {
  const std::lock_guard lock(mutex_);
  BH_TRY(DetectOnce());
  if (method_ == nullptr) {
    return nullptr;
  }
  while (!idle_.empty()) {
    std::unique_ptr<CgroupLeaf> leaf = std::move(idle_.back());
    idle_.pop_back();
    if (leaf->reusable()) {
      return leaf;
    }
  }
  // A leaf that is not locked yet can be taken for an abandoned one by another process's first use:
  // try once more.
  Result<std::unique_ptr<CgroupLeaf>> leaf = CgroupLeaf::Create(*method_, NextPath());
  return leaf ? std::move(leaf) : CgroupLeaf::Create(*method_, NextPath());
}

void CgroupPool::GiveBack(std::unique_ptr<CgroupLeaf> leaf) {
  if (!leaf->reusable()) {
    return;  // removed
  }
  const std::lock_guard lock(mutex_);
  if (method_ != nullptr && idle_.size() < kIdleLeavesMax) {
    idle_.push_back(std::move(leaf));
  }
}

void CgroupPool::MarkProven() {
  const std::lock_guard lock(mutex_);
  proven_ = true;
}

bool CgroupPool::GiveUpUnlessProven() {
  const std::lock_guard lock(mutex_);
  if (!proven_) {
    method_ = nullptr;
    idle_.clear();
  }
  return !proven_;
}

Result<std::string> CgroupPool::Mechanism() {
  const std::lock_guard lock(mutex_);
  BH_TRY(DetectOnce());
  return method_ == nullptr ? std::string() : std::string(method_->name);
}

Result<bool> CgroupPool::LimitsAtBirth() {
  const std::lock_guard lock(mutex_);
  if (limits_at_birth_) {
    return *limits_at_birth_ && (!detected_ || method_ != nullptr);
  }
  bool limits = false;
  for (const CgroupLocation& location : BH_TRY(Locations())) {
    limits = limits || (location.kind == CgroupKind::kV2 && Offering(location).limits);
  }
  limits_at_birth_ = limits;
  return limits;
}

std::string CgroupPool::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

Status CgroupPool::DetectOnce() {
  if (detected_) {
    return {};
  }
  for (const CgroupLocation& location : BH_TRY(Locations())) {
    if (BH_TRY(UseLocation(Offering(location).location))) {
      break;
    }
  }
  detected_ = true;
  return {};
}

Result<bool> CgroupPool::UseLocation(const CgroupLocation& location) {
  leaf_path_prefix_ = fmt::format("{}/{}{}-{}-", location.directory, kLeafNamePrefix, getpid(),
                                  RandomHex(kOwnerIdBytes));
  for (const CgroupMethod& method : methods_) {
    if (method.kind != location.kind) {
      continue;
    }
    Result<std::unique_ptr<CgroupLeaf>> leaf = CgroupLeaf::Create(method, NextPath());
    if (leaf) {
      RemoveAbandoned(method, location.directory);
      method_ = &method;
      idle_.push_back(*std::move(leaf));
      return true;
    }
    if (leaf.error().code == ErrorCode::kResourceExhausted) {
      return Fail(std::move(leaf).error());
    }
    why_ = leaf.error().message;
  }
  return false;
}

std::string CgroupPool::NextPath() {
  return leaf_path_prefix_ + std::to_string(next_number_++);
}

}  // namespace bulkhead::process
