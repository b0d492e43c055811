// A SpawnSpec checked and laid out for the child: every string, array and descriptor that ChildPlan
// points to.
#pragma once

#include <bulkhead/result.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "process/child_setup.h"
#include "process/launcher.h"
#include "process/namespaces.h"
#include "process/program_file.h"

namespace bulkhead::process {

// The text for Error::reason.
std::string_view StageName(LaunchStage stage);

class SpawnPlan {
 public:
  // kLaunch or kResourceExhausted, without program and stage: the launcher adds both.
  static Result<std::unique_ptr<SpawnPlan>> Prepare(const SpawnSpec& spec);

  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() = default;

  struct Attempt {
    std::vector<BorrowedFd> memberships;  // of cgroups to be joined by writing, in this order
    NamespaceMode namespaces = NamespaceMode::kNone;
    // Unless there are none: the init program, and its end of the socket it reports on.
    BorrowedFd init;
    BorrowedFd reports;
  };

  // Fresh for each attempt: the child writes to it. Points into this object.
  ChildPlan& NewAttempt(const Attempt& attempt);

  // A program pinned by digest was written to since it was hashed. From exec on the kernel refuses
  // such writes, so the answer is final once the child executes.
  bool ProgramChanged() const;

  const std::string& program() const { return program_; }

  const std::string& working_directory() const { return working_directory_; }

 private:
  SpawnPlan() = default;

  Status PlanDescriptors(const SpawnSpec& spec);
  Status PlanLimits(const SpawnSpec& spec);
  void PlanInit(const Attempt& attempt);

  std::string program_;
  std::string working_directory_;
  std::optional<VerifiedProgram> verified_;
  UniqueFd null_;
  std::vector<ChildPlan::Move> planned_moves_;
  std::vector<ChildPlan::Move> moves_;
  std::vector<ChildPlan::Limit> limits_;
  std::vector<int> memberships_;
  std::array<const char*, 3> arguments_{};
  std::string user_map_;
  std::string group_map_;
  ChildPlan child_;
};

}  // namespace bulkhead::process
