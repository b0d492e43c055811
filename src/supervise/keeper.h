// The one long-lived thread. It spawns workers (their parent-death signal belongs to the spawning
// thread), and it goes on killing and reaping workers whose run could not wait any longer.
//
// Thread-safe. Event-driven: it sleeps until somebody asks or a pidfd fires; only a failed kill is
// retried by time.
#pragma once

#include <bulkhead/result.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/event_fd.h"
#include "process/launcher.h"
#include "supervise/ledger.h"

namespace bulkhead::supervise {

// Everything that must live until the worker is gone, in one indivisible piece. `held` (staging,
// permits, gauges) is destroyed in order on the keeper's thread, after `process`.
struct CleanupBundle {
  std::unique_ptr<process::WorkerProcess> process;
  std::vector<std::shared_ptr<void>> held;
};

class Keeper {
 public:
  // First pause between attempts; doubles up to the last (one-shot specification 4.5).
  static constexpr std::chrono::milliseconds kRetryFirst{10};
  static constexpr std::chrono::milliseconds kRetryLast{1000};

  struct Pending {
    std::uint64_t count = 0;
    std::chrono::milliseconds oldest{0};
  };

  static Result<std::unique_ptr<Keeper>> Start(std::unique_ptr<process::Launcher> launcher,
                                               const Clock& clock, Ledger& ledger);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  // Stops the thread; bundles still pending are leaked on purpose: their gauges stay up, nothing of
  // them is destroyed.
  ~Keeper();

  // Launcher::Spawn on the keeper's thread. kShutdown once stopped.
  Result<std::unique_ptr<process::WorkerProcess>> Spawn(const process::SpawnSpec& spec);

  // Never blocks. After success: forced+1, reaped+1, then the bundle is destroyed. Once stopped the
  // bundle is leaked.
  void HandOff(CleanupBundle bundle);

  Pending pending() const;
  // Waits until nothing is pending; false when the deadline passes first.
  bool Drain(Deadline deadline);
  // Ends the thread after its current step. Idempotent.
  void Stop();

 private:
  struct SpawnRequest;

  struct Case {
    CleanupBundle bundle;
    MonotonicTime since;
    Deadline next_try = Deadline::Never();
    std::chrono::milliseconds pause = kRetryFirst;
  };

  Keeper(std::unique_ptr<process::Launcher> launcher, const Clock& clock, Ledger& ledger,
         EventFd wake);

  void Loop();
  // Takes over new work; false: stop.
  bool TakeWork(std::vector<Case>& cases);
  void ServeSpawns();
  void WaitForWork(const std::vector<Case>& cases);
  void Retry(std::vector<Case>& cases);
  bool TryContain(Case& open);

  std::unique_ptr<process::Launcher> launcher_;
  const Clock& clock_;
  Ledger& ledger_;
  EventFd wake_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a spawn was served, or fewer bundles are pending
  std::deque<SpawnRequest*> spawns_;
  std::vector<Case> arrivals_;
  std::vector<MonotonicTime> open_since_;  // one entry per pending bundle, oldest first
  bool stopping_ = false;
  bool stopped_ = false;

  std::thread thread_;  // last: starts when all the rest exists
};

}  // namespace bulkhead::supervise
