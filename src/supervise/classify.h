// Facts -> Outcome, in one pure function. docs/outcomes.md has the same rows in the same order.
#pragma once

#include <bulkhead/observer.h>
#include <bulkhead/outcome.h>

#include <chrono>
#include <optional>
#include <string>

#include "process/worker_process.h"
#include "supervise/run_machine.h"
#include "wire/messages.h"

namespace bulkhead::supervise {

// Everything that was observed of one worker.
struct Facts {
  Verdict verdict = Verdict::kNone;
  StopCause stop = StopCause::kNone;
  bool contained = true;  // false: could not be reaped in time, the Keeper goes on
  std::optional<wire::Terminal> terminal;
  std::optional<process::ExitStatus> exit;
  bool exited_by_itself = true;  // false: we had killed it
  bool guest_started = false;    // Started was received
  std::string worker_stderr;     // tail of what the worker program said
  // Why the run was stopped by ourselves, if not by the caller or the deadline.
  bool stdout_limit_reached = false;
  bool stdout_closed = false;
  std::optional<std::chrono::microseconds> cpu_limit;
  std::chrono::microseconds cpu_used{0};
  std::optional<CgroupMemory> memory;  // of a worker whose cgroup counts
};

// The whole outcome.
Outcome Classify(const Facts& facts);

// A worker-reported terminal on its own: table B's mapping.
Outcome MapTerminal(const wire::Terminal& terminal);

// Bytes of the allocation whose failure ended the worker, from the runtime's last words on its own
// stderr
// ("memory allocation of N bytes failed"); nullopt if it did not say so. Guests cannot write there.
std::optional<std::uint64_t> FailedAllocationBytes(std::string_view worker_stderr);

}  // namespace bulkhead::supervise
