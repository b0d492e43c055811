// Receives the stages of a run on the run's thread and hands them on: to --status-fd as JSON lines,
// to the live line as the current state. Thread-safe.
#pragma once

#include <bulkhead/observer.h>
#include <bulkhead/result.h>

#include <atomic>
#include <string_view>

#include "base/unique_fd.h"

namespace bulkhead::cli {

class EventRelay final : public Observer {
 public:
  // `status`: not owned; invalid: no lines.
  explicit EventRelay(BorrowedFd status) : status_(status) {}

  void OnStage(const RunEvent& event) override;
  // The last line. Call after the run has ended.
  void End(std::string_view code, int exit_status);

  // "convert" or "run"; set between runs only.
  void set_task(std::string_view task) { task_ = task; }

  Stage stage() const { return stage_.load(); }

  int worker_pid() const { return worker_pid_.load(); }

 private:
  // Drops the line if the reader does not take it at once: a run never waits for its audience.
  void WriteLine(std::string_view line);

  BorrowedFd status_;
  std::string_view task_ = "run";
  std::atomic<Stage> stage_{Stage::kAdmit};
  std::atomic<int> worker_pid_{0};
};

// Is `fd` open for writing? kInvalidArgument if not.
Status CheckStatusFd(int fd);

}  // namespace bulkhead::cli
