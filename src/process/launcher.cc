#include "process/launcher.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>

#include "base/clock.h"
#include "base/errno_error.h"
#include "base/proc_stat.h"
#include "base/strings.h"
#include "process/child_process.h"
#include "process/clone_child.h"
#include "process/contained_process.h"
#include "process/init_image.h"
#include "process/namespaces.h"
#include "process/program_file.h"
#include "process/spawn_plan.h"
#include "process/worker_cgroups.h"

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

Error ExecError(const SpawnPlan& plan, int sys_errno) {
  std::string message = ErrnoText(sys_errno);
  const std::string why = ExplainExecFailure(plan.program(), sys_errno);
  message += why.empty() ? "" : "; " + why;
  return LaunchError(plan.program(), LaunchStage::kExec,
                     Error{ErrorCode::kLaunch, std::move(message), sys_errno, {}});
}

Error WrittenTo() {
  return {ErrorCode::kLaunch, "it was written to while it was started", 0, {}};
}

// What the child wrote before it gave up.
Error ChildError(const SpawnPlan& plan, const ChildPlan& child) {
  if (!child.started) {
    return LaunchError(plan.program(), LaunchStage::kCreate,
                       Error{ErrorCode::kLaunch, "the new process was killed at once", 0, {}});
  }
  if (child.failed_stage == LaunchStage::kExec) {
    return ExecError(plan, child.error);
  }
  std::string message = ErrnoText(child.error);
  if (child.failed_stage == LaunchStage::kWorkingDirectory) {
    message = fmt::format("{}: {}", Quoted(plan.working_directory()), message);
  }
  if (child.failed_joining) {
    message = "joining a cgroup: " + message;
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
    error = LaunchError(plan.program(), LaunchStage::kExec, WrittenTo());
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

// Init's one-way line to us. Messages say who sent them, in our terms.
struct ReportSockets {
  UniqueFd parent;
  UniqueFd init;
};

Result<ReportSockets> MakeReportSockets() {
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Fail(ErrnoError("socketpair", "init", errno));
  }
  ReportSockets sockets{UniqueFd(ends[0]), UniqueFd(ends[1])};
  const int on = 1;
  if (setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return Fail(ErrnoError("setsockopt SO_PASSCRED", "init", errno));
  }
  return sockets;
}

// How every attempt to start one worker is made, but for the cgroup of its tree.
struct StartRequest {
  SpawnPlan::Attempt plan;
  std::uint64_t namespaces = 0;  // CLONE_NEW* flags
};

struct Attempt {
  Result<ClonedChild> child;
  bool joined = false;      // was in the cgroup of its tree, also when a later stage failed
  bool not_joined = false;  // was refused there
};

class KernelLauncher final : public Launcher {
 public:
  Result<std::unique_ptr<WorkerProcess>> Spawn(const SpawnSpec& spec) override;
  Result<OuterWalls> Walls(bool namespaces) override;

 private:
  Attempt Start(SpawnPlan& plan, const StartRequest& request, const CgroupLeaf* tree);
  Attempt StartInTree(SpawnPlan& plan, const StartRequest& request, WorkerCgroups& cgroups);
  Result<std::unique_ptr<WorkerProcess>> SpawnInGroup(SpawnPlan& plan, const TreeLimits& limits);
  Result<std::unique_ptr<WorkerProcess>> SpawnContained(SpawnPlan& plan, const TreeLimits& limits,
                                                        NamespaceMode mode);
  Result<BorrowedFd> Init();

  std::atomic<bool> birth_works_{true};
  std::shared_ptr<CgroupPools> cgroups_ = std::make_shared<CgroupPools>();
  NamespaceLadder namespaces_;
  std::mutex init_mutex_;
  UniqueFd init_;
};

enum class Join : std::uint8_t {
  kAtBirth,    // clone puts the child there; version 2 only
  kByWriting,  // the child does; slower
};

// Clones the child of a prepared plan; `child_plan` is the plan's newest attempt.
Result<ClonedChild> CloneAndExecute(const SpawnPlan& plan, ChildPlan& child_plan,
                                    CloneRequest request) {
  request.body = RunChild;
  request.argument = &child_plan;
  Result<ClonedChild> child = CloneChild(request);
  if (!child) {
    const bool namespaces = request.namespaces != 0;
    return Fail(LaunchError(plan.program(),
                            namespaces ? LaunchStage::kNamespaces : LaunchStage::kCreate,
                            std::move(child).error()));
  }
  if (child_plan.started && child_plan.error == 0) {
    return child;
  }
  ReapFailed(*child);
  return Fail(ChildError(plan, child_plan));
}

Attempt Try(SpawnPlan& plan, const StartRequest& request, const CgroupLeaf* tree, Join join) {
  const bool writes = tree != nullptr && join == Join::kByWriting;
  SpawnPlan::Attempt attempt = request.plan;
  if (writes) {
    attempt.memberships.insert(attempt.memberships.begin(), tree->membership());
  }
  ChildPlan& child_plan = plan.NewAttempt(attempt);
  CloneRequest clone;
  clone.namespaces = request.namespaces;
  if (tree != nullptr && !writes) {
    clone.cgroup = tree->directory();
  }
  Result<ClonedChild> child = CloneAndExecute(plan, child_plan, clone);
  const bool joined = tree != nullptr && child_plan.started && (!writes || child_plan.joined > 0);
  return {std::move(child), joined, writes && !joined && child_plan.failed_joining};
}

// As Try, by whichever way into the cgroup works on this machine.
Attempt KernelLauncher::Start(SpawnPlan& plan, const StartRequest& request,
                              const CgroupLeaf* tree) {
  const bool at_birth = tree != nullptr && tree->method().kind == CgroupKind::kV2 && birth_works_;
  if (at_birth) {
    Attempt attempt = Try(plan, request, tree, Join::kAtBirth);
    if (attempt.joined || attempt.child.error().code == ErrorCode::kResourceExhausted) {
      return attempt;
    }
  }
  Attempt attempt = Try(plan, request, tree, Join::kByWriting);
  if (at_birth && attempt.joined) {
    birth_works_ = false;  // else something other than the cgroup is in the way
  }
  return attempt;
}

// The cgroup is left out where it turns out that this machine does not let us join it.
Attempt KernelLauncher::StartInTree(SpawnPlan& plan, const StartRequest& request,
                                    WorkerCgroups& cgroups) {
  Attempt attempt = Start(plan, request, cgroups.tree());
  if (attempt.joined) {
    cgroups.MarkTreeProven();
  } else if (cgroups.tree() != nullptr && attempt.not_joined &&
             attempt.child.error().code == ErrorCode::kLaunch && cgroups.GiveUpTreeUnlessProven()) {
    attempt = Start(plan, request, nullptr);
  }
  if (!attempt.child) {
    cgroups.GiveBack();
  }
  return attempt;
}

Result<std::unique_ptr<WorkerProcess>> KernelLauncher::Spawn(const SpawnSpec& spec) {
  if (Status proc = CheckProc(); !proc) {
    return Fail(LaunchError(spec.program, LaunchStage::kPrepare, std::move(proc).error()));
  }
  Result<std::unique_ptr<SpawnPlan>> plan = SpawnPlan::Prepare(spec);
  if (!plan) {
    return Fail(LaunchError(spec.program, LaunchStage::kPrepare, std::move(plan).error()));
  }
  if (spec.namespaces) {
    for (NamespaceMode mode = namespaces_.mode(); mode != NamespaceMode::kNone;
         mode = namespaces_.mode()) {
      Result<std::unique_ptr<WorkerProcess>> process =
          SpawnContained(**plan, spec.tree_limits, mode);
      const bool reached = process || process.error().reason != StageName(LaunchStage::kNamespaces);
      if (reached) {
        namespaces_.MarkProven(mode);
      }
      if (reached || !namespaces_.StepDown(mode, process.error())) {
        return process;
      }
    }
  }
  return SpawnInGroup(**plan, spec.tree_limits);
}

Result<BorrowedFd> KernelLauncher::Init() {
  const std::lock_guard lock(init_mutex_);
  if (!init_.valid()) {
    init_ = BH_TRY(MakeInitImage());
  }
  return init_.borrow();
}

Result<std::unique_ptr<WorkerProcess>> KernelLauncher::SpawnContained(SpawnPlan& plan,
                                                                      const TreeLimits& limits,
                                                                      NamespaceMode mode) {
  const auto fail = [&](LaunchStage stage, Error error) {
    return Fail(LaunchError(plan.program(), stage, std::move(error)));
  };
  Result<BorrowedFd> init = Init();
  if (!init) {
    return fail(LaunchStage::kNamespaces, std::move(init).error());
  }
  Result<ReportSockets> reports = MakeReportSockets();
  if (!reports) {
    return fail(LaunchStage::kPrepare, std::move(reports).error());
  }
  Result<WorkerCgroups> cgroups = WorkerCgroups::Take(cgroups_, limits, true);
  if (!cgroups) {
    return fail(LaunchStage::kContainment, std::move(cgroups).error());
  }
  const StartRequest request{{.memberships = cgroups->LimitMemberships(),
                              .namespaces = mode,
                              .init = *init,
                              .reports = reports->init.borrow()},
                             CloneFlags(mode)};
  ClonedChild child = BH_TRY(StartInTree(plan, request, *cgroups).child);
  reports->init.Reset();
  ContainedProcess::Parts parts;
  parts.init_pidfd = std::move(child.pidfd);
  parts.reports = std::move(reports->parent);
  parts.mode = mode;
  parts.cgroups = *std::move(cgroups);
  const Result<int> exec_errno = TakeFirstReport(parts);
  auto process = std::make_unique<ContainedProcess>(std::move(parts));  // contains on destruction
  if (!exec_errno) {
    return fail(LaunchStage::kNamespaces, exec_errno.error());
  }
  if (*exec_errno != 0) {
    return Fail(ExecError(plan, *exec_errno));
  }
  if (plan.ProgramChanged()) {
    return fail(LaunchStage::kExec, WrittenTo());
  }
  return process;
}

// Where there are no namespaces.
Result<std::unique_ptr<WorkerProcess>> KernelLauncher::SpawnInGroup(SpawnPlan& plan,
                                                                    const TreeLimits& limits) {
  Result<WorkerCgroups> cgroups = WorkerCgroups::Take(cgroups_, limits, false);
  if (!cgroups) {
    return Fail(LaunchError(plan.program(), LaunchStage::kContainment, std::move(cgroups).error()));
  }
  StartRequest request;
  request.plan.memberships = cgroups->LimitMemberships();
  ClonedChild child = BH_TRY(StartInTree(plan, request, *cgroups).child);
  return TakeOver(plan, {.pidfd = std::move(child.pidfd),
                         .identity = {child.pid, 0},
                         .cgroups = *std::move(cgroups),
                         .host_rss_bytes_peak = OwnRssBytesPeak(),
                         .no_namespaces_because = namespaces_.why()});
}

Result<OuterWalls> KernelLauncher::Walls(bool namespaces) {
  OuterWalls walls;
  if (namespaces) {
    SpawnSpec nothing;
    nothing.program = "/";  // whatever happens, it is not executed
    nothing.namespaces = true;
    const Error error = Spawn(nothing).error();
    const NamespaceMode mode = namespaces_.mode();
    if (mode != NamespaceMode::kNone && error.reason != StageName(LaunchStage::kExec)) {
      return Fail(error);
    }
    walls = WallsOf(mode);
    walls.no_namespaces_because = namespaces_.why();
  }
  if (walls.mechanisms.empty()) {
    walls.mechanisms = {"process-group"};
    if (std::string cgroup = BH_TRY(cgroups_->tree.Mechanism()); !cgroup.empty()) {
      walls.mechanisms.push_back(std::move(cgroup));
    }
  }
  return walls;
}

}  // namespace

std::unique_ptr<Launcher> MakeLauncher() {
  return std::make_unique<KernelLauncher>();
}

}  // namespace bulkhead::process
