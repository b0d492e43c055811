// The WorkerProcess of the real kernel: a pidfd, the process group, and cgroups where there
// are any.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "process/process_group.h"
#include "process/worker_cgroups.h"
#include "process/worker_process.h"

namespace bulkhead::process {

class ChildProcess final : public WorkerProcess {
 public:
  struct Parts {
    UniqueFd pidfd;
    ProcessIdentity identity;
    WorkerCgroups cgroups;
    // Peak memory of this process when the worker executed. The kernel counts the memory a child
    // borrowed until exec as the child's own, so its accounted peak means something only above
    // this.
    std::uint64_t host_rss_bytes_peak = 0;
    std::string no_namespaces_because;
  };

  explicit ChildProcess(Parts parts);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() override;

  BorrowedFd pidfd() const override { return pidfd_.borrow(); }

  ProcessIdentity identity() const override { return identity_; }

  Result<std::optional<ExitStatus>> Observe() override;
  Status KillTree() override;
  Result<std::optional<ExitStatus>> KillAndReap(Deadline deadline) override;
  Status LimitGrowth(const MemoryGrowth& growth) override;
  void SampleMemory() override;

  ResourceUse resource_use() const override { return use_; }

  OuterWalls walls() const override;

 private:
  bool NumberIsOurs() const;
  Status Reap();
  Result<bool> WaitTreeGone(Deadline deadline);

  UniqueFd pidfd_;
  ProcessIdentity identity_;
  ProcessGroup group_;
  WorkerCgroups cgroups_;
  std::uint64_t host_rss_bytes_peak_;
  std::string no_namespaces_because_;

  std::optional<ExitStatus> exit_;  // observed
  bool reaped_ = false;
  bool contained_ = false;
  ResourceUse use_;
};

}  // namespace bulkhead::process
