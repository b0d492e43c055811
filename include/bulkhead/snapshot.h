// Counters of one Runtime at one moment. Monotonic counts and gauges are never merged.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead {

struct WorkerLedger {
  // monotonic
  std::uint64_t spawned = 0;
  std::uint64_t cancel_sent = 0;
  std::uint64_t grace_expired = 0;
  std::uint64_t forced = 0;
  std::uint64_t reaped = 0;
  std::uint64_t protocol_failures = 0;
  // gauges
  std::uint64_t live_workers = 0;
  std::uint64_t live_protocol_tasks = 0;
  std::uint64_t pending_root_leases = 0;

  friend bool operator==(const WorkerLedger&, const WorkerLedger&) = default;
};

// Spare workers, KeepWarm (run.h).
struct WarmCounts {
  std::uint64_t idle = 0;     // gauge: ready to be used
  std::uint64_t started = 0;  // monotonic, as all below
  std::uint64_t used = 0;
  std::uint64_t broken = 0;  // failed to start, or ended before they were used
  std::string problem;       // of the last that broke
};

// What became of compiled code in runs with a cache (RuntimeOptions::code_cache); monotonic.
struct CodeCounts {
  std::uint64_t hits = 0;     // entries that were whole
  std::uint64_t misses = 0;   // no entry, a corrupt or a stale one: compiled
  std::uint64_t corrupt = 0;  // entries that were not what they claim, removed
  std::uint64_t stale = 0;    // entries that the engine did not take, replaced
  std::uint64_t stored = 0;

  friend bool operator==(const CodeCounts&, const CodeCounts&) = default;
};

struct Snapshot {
  WorkerLedger workers;
  CodeCounts code;
  std::uint64_t active_runs = 0;  // holders of a run permit
  std::uint64_t cleanup_pending =
      0;  // workers that could not be reaped in time and are still being killed
  std::chrono::milliseconds cleanup_oldest{0};
  WarmCounts warm;
  std::vector<std::string>
      containment;  // what held the worker that ended last, as RunReport has it
};

}  // namespace bulkhead
