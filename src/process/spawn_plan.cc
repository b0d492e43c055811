#include "process/spawn_plan.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_error.h"
#include "base/strings.h"
#include "process/init_protocol.h"

namespace bulkhead::process {
namespace {

// 0, 1 and 2 exist in every worker: a program that finds one closed may take its next file for it.
constexpr int kStandardDescriptors = 3;

Status CheckPath(std::string_view path, std::string_view what) {
  if (path.find('\0') != std::string_view::npos) {
    return Fail(ErrorCode::kLaunch, fmt::format("the {} contains a NUL byte", what));
  }
  if (!path.starts_with('/')) {
    return Fail(ErrorCode::kLaunch,
                fmt::format("the {} {} is not an absolute path", what, Quoted(path)));
  }
  return {};
}

}  // namespace

std::string_view StageName(LaunchStage stage) {
  switch (stage) {
    case LaunchStage::kPrepare:
      return "prepare";
    case LaunchStage::kCreate:
      return "create";
    case LaunchStage::kNamespaces:
      return "namespaces";
    case LaunchStage::kContainment:
      return "containment";
    case LaunchStage::kDescriptors:
      return "descriptors";
    case LaunchStage::kWorkingDirectory:
      return "working-directory";
    case LaunchStage::kExec:
      return "exec";
  }
  return "unknown";
}

Result<std::unique_ptr<SpawnPlan>> SpawnPlan::Prepare(const SpawnSpec& spec) {
  BH_TRY(CheckPath(spec.program, "program"));
  BH_TRY(CheckPath(spec.working_directory, "working directory"));
  std::unique_ptr<SpawnPlan> plan(new SpawnPlan());
  plan->program_ = spec.program;
  plan->working_directory_ = spec.working_directory;
  BH_TRY(plan->PlanDescriptors(spec));
  BH_TRY(plan->PlanLimits(spec));
  if (spec.program_sha256) {
    plan->verified_ = BH_TRY(OpenVerifiedProgram(spec.program, *spec.program_sha256));
  }
  return plan;
}

Status SpawnPlan::PlanDescriptors(const SpawnSpec& spec) {
  for (const SpawnSpec::Descriptor& descriptor : spec.descriptors) {
    if (descriptor.target < 0 || descriptor.target >= kInitReportDescriptor ||
        !descriptor.source.valid()) {
      return Fail(
          ErrorCode::kLaunch,
          fmt::format("descriptor {} for number {}: an open one for a number from 0 to {}",
                      descriptor.source.get(), descriptor.target, kInitReportDescriptor - 1));
    }
    planned_moves_.push_back({descriptor.source.get(), descriptor.target});
  }
  for (int target = 0; target < kStandardDescriptors; ++target) {
    const bool given = std::any_of(planned_moves_.begin(), planned_moves_.end(),
                                   [&](const ChildPlan::Move& m) { return m.target == target; });
    if (given) {
      continue;
    }
    if (!null_.valid()) {
      null_.Reset(open("/dev/null", O_RDWR | O_CLOEXEC));
      if (!null_.valid()) {
        return Fail(ErrnoError("open", "/dev/null", errno));
      }
    }
    planned_moves_.push_back({null_.get(), target});
  }
  const auto by_target = [](const ChildPlan::Move& a, const ChildPlan::Move& b) {
    return a.target < b.target;
  };
  std::sort(planned_moves_.begin(), planned_moves_.end(), by_target);
  const auto twice =
      std::adjacent_find(planned_moves_.begin(), planned_moves_.end(),
                         [](const auto& a, const auto& b) { return a.target == b.target; });
  if (twice != planned_moves_.end()) {
    return Fail(ErrorCode::kLaunch,
                fmt::format("descriptor number {} is given twice", twice->target));
  }
  return {};
}

// A limit takes away, it never gives: no more than what this process may have.
Status SpawnPlan::PlanLimits(const SpawnSpec& spec) {
  std::vector<SpawnSpec::Limit> limits = {{RLIMIT_CORE, 0}};
  limits.insert(limits.end(), spec.limits.begin(), spec.limits.end());
  for (const SpawnSpec::Limit& limit : limits) {
    rlimit own{};
    if (prlimit(0, static_cast<__rlimit_resource>(limit.resource), nullptr, &own) != 0) {
      return Fail(ErrnoError(ErrorCode::kLaunch, "prlimit", std::to_string(limit.resource), errno));
    }
    const rlim_t value = std::min(limit.value, own.rlim_max);
    limits_.push_back({limit.resource, {value, value}});
  }
  return {};
}

bool SpawnPlan::ProgramChanged() const {
  return verified_ && WasWrittenTo(*verified_);
}

ChildPlan& SpawnPlan::NewAttempt(const Attempt& attempt) {
  moves_ = planned_moves_;
  child_ = ChildPlan{};
  child_.working_directory = working_directory_.c_str();
  memberships_.clear();
  for (const BorrowedFd membership : attempt.memberships) {
    memberships_.push_back(membership.get());
  }
  child_.memberships = memberships_.data();
  child_.membership_count = memberships_.size();
  if (attempt.namespaces == NamespaceMode::kNone) {
    arguments_ = {program_.c_str(), nullptr, nullptr};
    child_.program_fd = verified_ ? verified_->file.get() : -1;
    child_.parent = getpid();
  } else {
    PlanInit(attempt);
  }
  child_.arguments = arguments_.data();
  child_.moves = moves_.data();
  child_.move_count = moves_.size();
  child_.limits = limits_.data();
  child_.limit_count = limits_.size();
  return child_;
}

void SpawnPlan::PlanInit(const Attempt& attempt) {
  arguments_ = {"bulkhead-init", program_.c_str(), nullptr};
  child_.program_fd = attempt.init.get();
  child_.is_init = true;
  child_.own_mounts = true;
  moves_.push_back({attempt.reports.get(), kInitReportDescriptor});
  if (verified_) {
    moves_.push_back({verified_->file.get(), kInitProgramDescriptor});
  }
  if (attempt.namespaces == NamespaceMode::kOwnUser) {
    // As root, because any other user loses its rights in the namespace with the first exec.
    user_map_ = fmt::format("0 {} 1", geteuid());
    group_map_ = fmt::format("0 {} 1", getegid());
    child_.user_map = user_map_.c_str();
    child_.group_map = group_map_.c_str();
  }
}

}  // namespace bulkhead::process
