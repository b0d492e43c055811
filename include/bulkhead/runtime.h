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

class CodeCache;

struct RuntimeOptions {
  std::uint32_t active_runs_max =
      0;  // 0: unlimited. A run above it ends as root-execution-limit-exceeded
  Observer* observer = nullptr;  // must outlive the Runtime
  // Where runs find and leave compiled code (code_cache.h); shared with whoever else uses it.
  // nullptr: every run compiles for itself.
  // NOLINTNEXTLINE(readability-redundant-member-init): lets callers leave it out (g++ asks for it)
  std::shared_ptr<CodeCache> code_cache = nullptr;
};

// Thread-safe. At most three library threads, joined by the destructor: keeper and watchdog,
// started with it, and one for spare workers, started by the first KeepWarm.
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
