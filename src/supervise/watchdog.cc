#include "supervise/watchdog.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <system_error>

#include "base/errno_error.h"

namespace bulkhead::supervise {
namespace {

constexpr std::uint64_t kWakeKey = 0;

Status Watch(BorrowedFd epoll, int fd, std::uint64_t key) {
  // One-shot: a cancel token stays readable for ever, one look is enough.
  epoll_event event{key == kWakeKey ? EPOLLIN : EPOLLIN | EPOLLONESHOT, {.u64 = key}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return Fail(ErrnoError("epoll_ctl", "", errno));
  }
  return {};
}

int TimeoutMs(Deadline next, MonotonicTime now) {
  if (next.never()) {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next.Remaining(now)).count();
  return static_cast<int>(std::min<std::int64_t>(left, 3'600'000));
}

}  // namespace

WatchGuard::~WatchGuard() {
  if (owner_ != nullptr) {
    owner_->Disarm(key_);
  }
}

bool WatchGuard::fired() const {
  return owner_ != nullptr && owner_->Fired(key_);
}

Result<std::unique_ptr<Watchdog>> Watchdog::Start(const Clock& clock) {
  EventFd wake = BH_TRY(EventFd::Create());
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) {
    return Fail(ErrnoError("epoll_create1", "", errno));
  }
  BH_TRY(supervise::Watch(epoll.borrow(), wake.fd().get(), kWakeKey));
  std::unique_ptr<Watchdog> watchdog(new Watchdog(clock, std::move(wake), std::move(epoll)));
  try {
    watchdog->thread_ = std::thread([self = watchdog.get()] { self->Loop(); });
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kResourceExhausted,
                std::string("starting the watchdog thread: ") + error.what(), error.code().value());
  }
  return watchdog;
}

Watchdog::Watchdog(const Clock& clock, EventFd wake, UniqueFd epoll)
    : clock_(clock), wake_(std::move(wake)), epoll_(std::move(epoll)) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.Signal();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<WatchGuard> Watchdog::Arm(Watch watch) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t key = next_key_++;
  UniqueFd cancel;
  if (watch.cancel.poll_fd() >= 0) {
    // A duplicate of its own: runs may share one token, and an epoll set takes a descriptor number
    // once.
    cancel.Reset(fcntl(watch.cancel.poll_fd(), F_DUPFD_CLOEXEC, 0));
    if (!cancel.valid()) {
      return Fail(ErrnoError("fcntl F_DUPFD_CLOEXEC", "cancel token", errno));
    }
    BH_TRY(supervise::Watch(epoll_.borrow(), cancel.get(), key));
  }
  Entry entry{std::move(watch), std::move(cancel)};
  if (!entry.watch.deadline.never()) {
    entry.kill_at = Deadline::After(entry.watch.deadline.when(), entry.watch.grace + kSlack);
  }
  const Deadline kill_at = entry.kill_at;
  entries_.emplace(key, std::move(entry));
  if (kill_at < planned_) {
    planned_ = kill_at;
    wake_.Signal();
  }
  return WatchGuard(this, key);
}

void Watchdog::Disarm(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found->second.cancel.valid()) {
    // Before closing: the set would keep the duplicate as long as the token itself is open.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.cancel.get(), nullptr);
  }
  entries_.erase(found);
}

bool Watchdog::Fired(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  return entries_.at(key).fired;
}

void Watchdog::NoteCancel(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.cancel_seen) {
    return;
  }
  Entry& entry = found->second;
  entry.cancel_seen = true;
  entry.kill_at =
      std::min(entry.kill_at, Deadline::After(clock_.Now(), entry.watch.grace + kSlack));
}

std::uint64_t Watchdog::kills() const {
  const std::lock_guard lock(mutex_);  // a kill that is seen is counted
  return kills_;
}

Deadline Watchdog::KillDue() {
  const std::lock_guard lock(mutex_);
  Deadline next = Deadline::Never();
  const MonotonicTime now = clock_.Now();
  for (auto& [key, entry] : entries_) {
    if (entry.kill_at.PassedAt(now)) {
      // The pidfd names exactly this process; once it is reaped the call fails with ESRCH and hits
      // nobody.
      if (syscall(SYS_pidfd_send_signal, entry.watch.pidfd.get(), SIGKILL, nullptr, 0) == 0) {
        ++kills_;
        entry.fired = true;
      }
      entry.kill_at = Deadline::Never();
    }
    next = std::min(next, entry.kill_at);
  }
  planned_ = next;
  return next;
}

void Watchdog::Loop() {
  std::array<epoll_event, 16> events{};
  for (;;) {
    const Deadline next = KillDue();
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 TimeoutMs(next, clock_.Now()));
    for (int i = 0; i < count; ++i) {
      const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
      if (key == kWakeKey) {
        wake_.Drain();
      } else {
        NoteCancel(key);
      }
    }
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      return;
    }
  }
}

}  // namespace bulkhead::supervise
