#include "process/launcher.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>

#include "base/clock.h"
#include "base/errno_error.h"
#include "base/proc_stat.h"
#include "base/strings.h"
#include "process/cgroup_pool.h"
#include "process/child_process.h"
#include "process/clone_child.h"
#include "process/program_file.h"
#include "process/spawn_plan.h"

namespace bulkhead::process {
namespace {

ErrorCode CodeFor(int sys_errno) {
  switch (sys_errno) {
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
      return ErrorCode::kResourceExhausted;
    default:
      return ErrorCode::kLaunch;
  }
}

Error LaunchError(const std::string& program, LaunchStage stage, Error cause) {
  cause.message = fmt::format("cannot start worker {} ({}): {}", Quoted(program), StageName(stage),
                              cause.message);
  cause.reason = StageName(stage);
  cause.code = CodeFor(cause.sys_errno);
  return cause;
}

// What the child wrote before it gave up.
Error ChildError(const SpawnPlan& plan, const ChildPlan& child) {
  if (!child.started) {
    return LaunchError(plan.program(), LaunchStage::kCreate,
                       Error{ErrorCode::kLaunch, "the new process was killed at once", 0, {}});
  }
  std::string message = ErrnoText(child.error);
  if (child.failed_stage == LaunchStage::kExec) {
    const std::string why = ExplainExecFailure(plan.program(), child.error);
    message += why.empty() ? "" : "; " + why;
  } else if (child.failed_stage == LaunchStage::kWorkingDirectory) {
    message = fmt::format("{}: {}", Quoted(plan.working_directory()), message);
  }
  return LaunchError(plan.program(), child.failed_stage,
                     Error{ErrorCode::kLaunch, std::move(message), child.error, {}});
}

void ReapFailed(const ClonedChild& child) {
  siginfo_t info{};
  while (waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &info, WEXITED) != 0 &&
         errno == EINTR) {
  }
}

std::uint64_t OwnRssBytesPeak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

// The worker runs. What cannot be owned properly is killed again.
Result<std::unique_ptr<WorkerProcess>> TakeOver(const SpawnPlan& plan, ChildProcess::Parts parts) {
  std::optional<Error> error;
  Result<ProcessIdentity> identity = IdentityOf(parts.identity.pid);
  if (identity) {
    parts.identity = *identity;
  } else if (identity.error().code != ErrorCode::kNotFound) {
    // kNotFound: it ended already, and the host has its children reaped by the kernel. The pid
    // alone then never matches.
    error = LaunchError(plan.program(), LaunchStage::kCreate, std::move(identity).error());
  }
  if (!error && plan.ProgramChanged()) {
    error = LaunchError(plan.program(), LaunchStage::kExec,
                        Error{ErrorCode::kLaunch, "it was written to while it was started", 0, {}});
  }
  auto process = std::make_unique<ChildProcess>(std::move(parts));  // contains on destruction
  if (error) {
    return Fail(*std::move(error));
  }
  return process;
}

// Identities are read from /proc: it has to be the one of our own pid namespace.
Status CheckProc() {
  char buffer[32];
  const ssize_t length = readlink("/proc/self", buffer, sizeof buffer);
  const std::string_view self(buffer, length > 0 ? static_cast<std::size_t>(length) : 0);
  if (self != std::to_string(getpid())) {
    return Fail(ErrorCode::kLaunch, "/proc does not show this pid namespace: mount proc there");
  }
  return {};
}

struct Attempt {
  Result<ClonedChild> child;
  bool joined = false;  // was in the leaf, also when a later stage failed
};

class KernelLauncher final : public Launcher {
 public:
  Result<std::unique_ptr<WorkerProcess>> Spawn(const SpawnSpec& spec) override;
  Result<std::vector<std::string>> TreeMechanisms() override;

 private:
  Attempt Start(SpawnPlan& plan, const CgroupLeaf& leaf);

  std::atomic<bool> birth_works_{true};
  std::shared_ptr<CgroupPool> leaves_ = std::make_shared<CgroupPool>();
};

enum class Join : std::uint8_t {
  kAtBirth,    // clone puts the child there; version 2 only
  kByWriting,  // the child does; slower
};

Attempt Try(SpawnPlan& plan, const CgroupLeaf* leaf, Join join) {
  const bool writes = leaf != nullptr && join == Join::kByWriting;
  ChildPlan& child_plan = plan.NewAttempt(writes ? leaf->membership() : BorrowedFd());
  CloneRequest request{.body = RunChild, .argument = &child_plan, .cgroup = {}};
  if (leaf != nullptr && join == Join::kAtBirth) {
    request.cgroup = leaf->directory();
  }
  Result<ClonedChild> child = CloneChild(request);
  if (!child) {
    return {Fail(LaunchError(plan.program(), LaunchStage::kCreate, std::move(child).error()))};
  }
  const bool joined = leaf != nullptr && child_plan.started && !child_plan.failed_joining;
  if (child_plan.started && child_plan.error == 0) {
    return {std::move(child), joined};
  }
  ReapFailed(*child);
  return {Fail(ChildError(plan, child_plan)), joined};
}

// As Try, by whichever way into the leaf works on this machine.
Attempt KernelLauncher::Start(SpawnPlan& plan, const CgroupLeaf& leaf) {
  if (leaf.method().kind == CgroupKind::kV2 && birth_works_) {
    Attempt attempt = Try(plan, &leaf, Join::kAtBirth);
    if (attempt.joined || attempt.child.error().code == ErrorCode::kResourceExhausted) {
      return attempt;
    }
    birth_works_ = false;
  }
  return Try(plan, &leaf, Join::kByWriting);
}

Result<std::unique_ptr<WorkerProcess>> KernelLauncher::Spawn(const SpawnSpec& spec) {
  if (Status proc = CheckProc(); !proc) {
    return Fail(LaunchError(spec.program, LaunchStage::kPrepare, std::move(proc).error()));
  }
  Result<std::unique_ptr<SpawnPlan>> plan = SpawnPlan::Prepare(spec);
  if (!plan) {
    return Fail(LaunchError(spec.program, LaunchStage::kPrepare, std::move(plan).error()));
  }
  Result<std::unique_ptr<CgroupLeaf>> taken = leaves_->Take();
  if (!taken) {
    return Fail(LaunchError(spec.program, LaunchStage::kContainment, std::move(taken).error()));
  }
  std::unique_ptr<CgroupLeaf> leaf = *std::move(taken);
  Attempt attempt = leaf != nullptr ? Start(**plan, *leaf) : Try(**plan, nullptr, Join::kAtBirth);
  if (attempt.joined) {
    leaves_->MarkProven();
  } else if (leaf != nullptr && attempt.child.error().code == ErrorCode::kLaunch &&
             leaves_->GiveUpUnlessProven()) {
    leaf.reset();
    attempt = Try(**plan, nullptr, Join::kAtBirth);
  }
  if (!attempt.child) {
    if (leaf != nullptr) {
      leaves_->GiveBack(std::move(leaf));
    }
    return Fail(std::move(attempt.child).error());
  }
  return TakeOver(**plan, {.pidfd = std::move(attempt.child->pidfd),
                           .identity = {attempt.child->pid, 0},
                           .leaf = std::move(leaf),
                           .leaves = leaves_,
                           .host_rss_bytes_peak = OwnRssBytesPeak()});
}

Result<std::vector<std::string>> KernelLauncher::TreeMechanisms() {
  std::vector<std::string> mechanisms = {"process-group"};
  if (std::string cgroup = BH_TRY(leaves_->Mechanism()); !cgroup.empty()) {
    mechanisms.push_back(std::move(cgroup));
  }
  return mechanisms;
}

}  // namespace

std::unique_ptr<Launcher> MakeLauncher() {
  return std::make_unique<KernelLauncher>();
}

}  // namespace bulkhead::process
