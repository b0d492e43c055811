#include "supervise/keeper.h"

#include <algorithm>
#include <system_error>

#include "base/wait_set.h"

namespace bulkhead::supervise {

namespace {

// Nobody is left to contain it: keep it for ever, so that nothing pretends that it is gone.
// Reachable, so that leak checkers do not take it for an accident.
void KeepForEver(CleanupBundle bundle) {
  static std::mutex mutex;
  static auto* const kKept = new std::deque<CleanupBundle>();
  const std::lock_guard lock(mutex);
  kKept->push_back(std::move(bundle));
}

}  // namespace

struct Keeper::SpawnRequest {
  const process::SpawnSpec* spec;
  std::optional<Result<std::unique_ptr<process::WorkerProcess>>> answer;
};

Result<std::unique_ptr<Keeper>> Keeper::Start(std::unique_ptr<process::Launcher> launcher,
                                              const Clock& clock, Ledger& ledger) {
  EventFd wake = BH_TRY(EventFd::Create());
  std::unique_ptr<Keeper> keeper(new Keeper(std::move(launcher), clock, ledger, std::move(wake)));
  try {
    keeper->thread_ = std::thread([self = keeper.get()] { self->Loop(); });
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kResourceExhausted,
                std::string("starting the keeper thread: ") + error.what(), error.code().value());
  }
  return keeper;
}

Keeper::Keeper(std::unique_ptr<process::Launcher> launcher, const Clock& clock, Ledger& ledger,
               EventFd wake)
    : launcher_(std::move(launcher)), clock_(clock), ledger_(ledger), wake_(std::move(wake)) {}

Keeper::~Keeper() {
  Stop();
}

void Keeper::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.Signal();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<std::unique_ptr<process::WorkerProcess>> Keeper::Spawn(const process::SpawnSpec& spec) {
  SpawnRequest request{&spec, std::nullopt};
  std::unique_lock lock(mutex_);
  if (stopping_) {
    return Fail(ErrorCode::kShutdown, "the runtime is shutting down");
  }
  spawns_.push_back(&request);
  wake_.Signal();
  changed_.wait(lock, [&] { return request.answer.has_value(); });
  return std::move(*request.answer);
}

void Keeper::HandOff(CleanupBundle bundle) {
  {
    const std::lock_guard lock(mutex_);
    const MonotonicTime now = clock_.Now();
    open_since_.push_back(now);
    if (!stopped_) {
      arrivals_.push_back(Case{std::move(bundle), now, Deadline::At(now)});
      wake_.Signal();
      return;
    }
  }
  KeepForEver(std::move(bundle));
}

Keeper::Pending Keeper::pending() const {
  const std::lock_guard lock(mutex_);
  if (open_since_.empty()) {
    return {};
  }
  return {open_since_.size(), std::chrono::duration_cast<std::chrono::milliseconds>(
                                  clock_.Now() - open_since_.front())};
}

bool Keeper::Drain(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto empty = [this] { return open_since_.empty() || stopped_; };
  if (deadline.never()) {
    changed_.wait(lock, empty);
  } else {
    changed_.wait_until(lock, deadline.when(), empty);
  }
  return open_since_.empty();
}

void Keeper::Loop() {
  std::vector<Case> cases;
  while (TakeWork(cases)) {
    ServeSpawns();
    Retry(cases);
    WaitForWork(cases);
  }
  for (Case& open : cases) {
    KeepForEver(std::move(open.bundle));
  }
}

bool Keeper::TakeWork(std::vector<Case>& cases) {
  wake_.Drain();
  const std::lock_guard lock(mutex_);
  std::move(arrivals_.begin(), arrivals_.end(), std::back_inserter(cases));
  arrivals_.clear();
  if (!stopping_) {
    return true;
  }
  stopped_ = true;
  for (SpawnRequest* request : spawns_) {
    request->answer = Fail(ErrorCode::kShutdown, "the runtime is shutting down");
  }
  spawns_.clear();
  changed_.notify_all();
  return false;
}

void Keeper::ServeSpawns() {
  std::unique_lock lock(mutex_);
  while (!spawns_.empty()) {
    SpawnRequest* request = spawns_.front();
    spawns_.pop_front();
    lock.unlock();
    auto answer = launcher_->Spawn(*request->spec);
    lock.lock();
    request->answer = std::move(answer);
    changed_.notify_all();
  }
}

void Keeper::WaitForWork(const std::vector<Case>& cases) {
  WaitSet waits;
  waits.Add(wake_.fd(), POLLIN, 0);
  Deadline next = Deadline::Never();
  for (const Case& open : cases) {
    next = std::min(next, open.next_try);
  }
  // A failed wait would mean an invalid set; the retry times still bound the loop.
  (void)waits.Wait(clock_, next);
}

void Keeper::Retry(std::vector<Case>& cases) {
  for (std::size_t i = 0; i < cases.size();) {
    Case& open = cases[i];
    if (open.next_try.PassedAt(clock_.Now()) && TryContain(open)) {
      const MonotonicTime since = open.since;
      cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(i));
      const std::lock_guard lock(mutex_);
      open_since_.erase(std::find(open_since_.begin(), open_since_.end(), since));
      changed_.notify_all();
    } else {
      ++i;
    }
  }
}

bool Keeper::TryContain(Case& open) {
  // A short bound: the worker has been killed before, usually only the kernel's own delay is left.
  const auto reaped = open.bundle.process->KillAndReap(Deadline::After(clock_.Now(), open.pause));
  if (!reaped || !*reaped) {
    open.pause = std::min(open.pause * 2, kRetryLast);
    open.next_try = Deadline::After(clock_.Now(), open.pause);
    return false;
  }
  ledger_.Add(&WorkerLedger::forced);
  ledger_.Add(&WorkerLedger::reaped);
  open.bundle.process.reset();
  open.bundle.held.clear();
  return true;
}

}  // namespace bulkhead::supervise
