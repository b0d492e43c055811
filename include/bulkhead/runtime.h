// A Runtime owns what runs share: the thread that spawns and cleans up, the watchdog, the ledgers.
// Make one per program, or one per group of runs that shall share limits and counters.
#pragma once

#include <bulkhead/observer.h>
#include <bulkhead/result.h>
#include <bulkhead/snapshot.h>

#include <chrono>
#include <cstdint>
#include <memory>

namespace bulkhead {

struct RuntimeOptions {
  std::uint32_t active_runs_max =
      0;  // 0: unlimited. A run above it ends as root-execution-limit-exceeded
  Observer* observer = nullptr;  // must outlive the Runtime
};

// Thread-safe. At most two library threads (keeper, watchdog), started with it, joined by the
// destructor.
class Runtime {
 public:
  // kResourceExhausted if a thread or descriptor is not to be had.
  static Result<std::unique_ptr<Runtime>> Create(const RuntimeOptions& options);

  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  // Waits for cleanup that is still pending, as Drain(kShutdownDrain); what is left is reported to
  // nobody and its workers stay killed but unreaped. Runs must have ended.
  ~Runtime();

  Snapshot snapshot() const;

  // Waits until no cleanup is pending; false when `budget` is over first.
  bool Drain(std::chrono::milliseconds budget);

  static constexpr std::chrono::milliseconds kShutdownDrain{2000};

  struct Impl;

  Impl& impl() { return *impl_; }  // for the library itself

 private:
  explicit Runtime(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace bulkhead
