// What runs and pools of one Runtime share. Internal: nobody outside the library sees it.
#pragma once

#include <bulkhead/runtime.h>

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "supervise/keeper.h"
#include "supervise/ledger.h"
#include "supervise/warm_pool.h"
#include "supervise/watchdog.h"

namespace bulkhead {

struct Runtime::Impl {
  RuntimeOptions options;
  MonotonicClock clock;
  supervise::Ledger ledger;
  supervise::CodeLedger code_ledger;
  std::atomic<std::uint64_t> active_runs{0};
  supervise::ContainmentRecord containment;
  std::unique_ptr<supervise::Watchdog> watchdog;
  std::unique_ptr<supervise::Keeper> keeper;  // its thread uses the ledger
  std::unique_ptr<supervise::WarmPool> warm;  // last: it uses the keeper
};

namespace supervise {

// The right to one run: counted in active_runs and in the pending_root_leases gauge while it lives.
class RunPermit {
 public:
  // nullptr when active_runs_max are held already.
  static std::shared_ptr<RunPermit> TryAcquire(Runtime::Impl& runtime);
  RunPermit(const RunPermit&) = delete;
  RunPermit& operator=(const RunPermit&) = delete;
  ~RunPermit();

 private:
  explicit RunPermit(Runtime::Impl& runtime);

  Runtime::Impl& runtime_;
  GaugeHold lease_;
};

// Ids are unique within the process, start at 1 and never wrap; 0 when they are used up.
std::uint64_t NextRunId();

}  // namespace supervise
}  // namespace bulkhead
