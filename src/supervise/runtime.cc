#include <limits>

#include "supervise/runtime_impl.h"

namespace bulkhead {

Result<std::unique_ptr<Runtime>> Runtime::Create(const RuntimeOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->watchdog = BH_TRY(supervise::Watchdog::Start(impl->clock));
  impl->keeper =
      BH_TRY(supervise::Keeper::Start(process::MakeLauncher(), impl->clock, impl->ledger));
  impl->warm = std::make_unique<supervise::WarmPool>(*impl->keeper, impl->clock, impl->ledger);
  return std::unique_ptr<Runtime>(new Runtime(std::move(impl)));
}

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Runtime::~Runtime() {
  Drain(kShutdownDrain);
}

Snapshot Runtime::snapshot() const {
  const auto pending = impl_->keeper->pending();
  return {impl_->ledger.Read(), impl_->code_ledger.Read(), impl_->active_runs.load(), pending.count,
          pending.oldest,       impl_->warm->counts(),     impl_->containment.Read()};
}

bool Runtime::Drain(std::chrono::milliseconds budget) {
  return impl_->keeper->Drain(Deadline::After(impl_->clock.Now(), budget));
}

namespace supervise {

std::shared_ptr<RunPermit> RunPermit::TryAcquire(Runtime::Impl& runtime) {
  const std::uint64_t most = runtime.options.active_runs_max == 0
                                 ? std::numeric_limits<std::uint64_t>::max()
                                 : runtime.options.active_runs_max;
  std::uint64_t held = runtime.active_runs.load();
  do {
    if (held >= most) {
      return nullptr;
    }
  } while (!runtime.active_runs.compare_exchange_weak(held, held + 1));
  return std::shared_ptr<RunPermit>(new RunPermit(runtime));
}

RunPermit::RunPermit(Runtime::Impl& runtime)
    : runtime_(runtime), lease_(runtime.ledger, &WorkerLedger::pending_root_leases) {}

RunPermit::~RunPermit() {
  runtime_.active_runs.fetch_sub(1);
}

std::uint64_t NextRunId() {
  static std::atomic<std::uint64_t> last{0};
  std::uint64_t current = last.load();
  do {
    if (current == std::numeric_limits<std::uint64_t>::max()) {
      return 0;
    }
  } while (!last.compare_exchange_weak(current, current + 1));
  return current + 1;
}

}  // namespace supervise
}  // namespace bulkhead
