// A backstop that does not depend on the thread that runs the exchange: kills a worker when its
// run's deadline plus grace plus slack has passed, or its cancel plus grace plus slack, and the
// exchange has not done so.
//
// Thread-safe. Arming wakes nobody unless the new bound is the earliest; an undisturbed run costs
// no wake-up.
#pragma once

#include <bulkhead/cancellation.h>
#include <bulkhead/deadline.h>
#include <bulkhead/result.h>

#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/event_fd.h"

namespace bulkhead::supervise {

class Watchdog;

// Keeps one worker watched; disarms when destroyed.
class WatchGuard {
 public:
  WatchGuard() = default;

  WatchGuard(WatchGuard&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), key_(other.key_) {}

  WatchGuard& operator=(WatchGuard&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(key_, other.key_);
    return *this;
  }

  WatchGuard(const WatchGuard&) = delete;
  WatchGuard& operator=(const WatchGuard&) = delete;
  ~WatchGuard();

  // Did the watchdog kill this worker?
  bool fired() const;

 private:
  friend class Watchdog;

  WatchGuard(Watchdog* owner, std::uint64_t key) : owner_(owner), key_(key) {}

  Watchdog* owner_ = nullptr;
  std::uint64_t key_ = 0;
};

class Watchdog {
 public:
  // The exchange is given this much time beyond its own bound before the watchdog steps in.
  static constexpr std::chrono::milliseconds kSlack{1000};

  struct Watch {
    UniqueFd pidfd;  // a duplicate: the number stays ours whatever the exchange does
    Deadline deadline = Deadline::Never();
    std::chrono::nanoseconds grace{0};
    CancelToken cancel;
  };

  static Result<std::unique_ptr<Watchdog>> Start(const Clock& clock);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  Result<WatchGuard> Arm(Watch watch);

  std::uint64_t kills() const;

 private:
  friend class WatchGuard;

  struct Entry {
    Watch watch;
    UniqueFd cancel;  // duplicate of the token's descriptor, in the epoll set
    Deadline kill_at = Deadline::Never();
    bool cancel_seen = false;
    bool fired = false;
  };

  Watchdog(const Clock& clock, EventFd wake, UniqueFd epoll);

  void Loop();
  void Disarm(std::uint64_t key);
  bool Fired(std::uint64_t key);
  void NoteCancel(std::uint64_t key);
  // Kills what is due; the time of the next one.
  Deadline KillDue();

  const Clock& clock_;
  EventFd wake_;
  UniqueFd epoll_;

  mutable std::mutex mutex_;
  std::uint64_t kills_ = 0;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t next_key_ = 1;
  Deadline planned_ = Deadline::Never();  // when the thread will wake by itself
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace bulkhead::supervise
