// The WorkerProcess of the real kernel where it gives us a pid namespace: the worker and everything
// it forks live in one whose pid 1 is our init. Killing init kills all of it, whatever sessions and
// groups it moved to, and once init is reaped nothing of it is left: the kernel sees to both.
#pragma once

#include <memory>
#include <optional>

#include "process/init_protocol.h"
#include "process/namespaces.h"
#include "process/worker_cgroups.h"
#include "process/worker_process.h"

namespace bulkhead::process {

class ContainedProcess final : public WorkerProcess {
 public:
  struct Parts {
    UniqueFd init_pidfd;
    UniqueFd reports;  // init's socket, its first report taken
    UniqueFd worker_pidfd;
    ProcessIdentity worker;  // as this process sees it
    NamespaceMode mode = NamespaceMode::kDirect;
    WorkerCgroups cgroups;
  };

  explicit ContainedProcess(Parts parts) : parts_(std::move(parts)) {}

  ContainedProcess(const ContainedProcess&) = delete;
  ContainedProcess& operator=(const ContainedProcess&) = delete;
  ~ContainedProcess() override;

  // Of init, which ends after the worker and everything else in the namespace.
  BorrowedFd pidfd() const override { return parts_.init_pidfd.borrow(); }

  ProcessIdentity identity() const override { return parts_.worker; }

  OuterWalls walls() const override;

  Result<std::optional<ExitStatus>> Observe() override;
  Status KillTree() override;
  Result<std::optional<ExitStatus>> KillAndReap(Deadline deadline) override;
  Status LimitGrowth(const MemoryGrowth& growth) override;
  void SampleMemory() override;

  ResourceUse resource_use() const override { return use_; }

 private:
  bool WorkerExited() const;
  std::optional<ExitStatus> TakeLastReport();

  Parts parts_;
  std::optional<ExitStatus> exit_;  // observed
  bool contained_ = false;
  ResourceUse use_;
};

// Waits for init's first report. `worker_pidfd` and `worker` of the parts are filled if the worker
// executes; else the errno of its execution is returned, or kIo if init ended without a word.
Result<int> TakeFirstReport(ContainedProcess::Parts& parts);

}  // namespace bulkhead::process
