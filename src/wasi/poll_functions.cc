// poll_oneoff: sleeping, and waiting for descriptors.
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "wasi/functions.h"
#include "wasi/guest_clock.h"

namespace bulkhead::wasi {
namespace {

// Bounds what one call makes us allocate (about half a megabyte); a guest can hold no more than
// 1024 descriptors.
constexpr std::uint32_t kSubscriptionsMax = 4096;

struct Wait {
  std::uint64_t userdata = 0;
  EventType type = EventType::kClock;
  Errno error = Errno::kSuccess;  // anything else: the event is there at once

  clockid_t clock = CLOCK_MONOTONIC;
  std::uint64_t due_ns = 0;  // on `clock`

  std::shared_ptr<Descriptor> descriptor;  // null for a clock
  std::size_t poll_index = 0;  // of its descriptor among the polled ones; 0 is none: always ready
};

class PollCall {
 public:
  explicit PollCall(Call& call) : call_(call) {
    // Entry 0 is the stop event; invalid descriptors are skipped by the kernel.
    polled_.push_back({call.wasi().stop_event().get(), POLLIN, 0});
  }

  void Add(const Subscription& subscription);
  // Blocks until there is an event.
  Answer<std::vector<Event>> Run();

 private:
  Answer<void> AddClock(const SubscriptionClock& clock, Wait& wait) const;
  Answer<void> AddDescriptor(std::uint32_t fd, Wait& wait);
  std::size_t PollIndex(int fd, short events);
  Answer<void> PollOnce(bool block);
  Answer<std::vector<Event>> Collect() const;
  bool ReadyAtOnce(const Wait& wait) const;
  Event DescriptorEvent(const Wait& wait) const;

  Call& call_;
  std::vector<Wait> waits_;
  std::vector<pollfd> polled_;
};

void PollCall::Add(const Subscription& subscription) {
  Wait wait;
  wait.userdata = subscription.userdata;
  wait.type = subscription.type;
  const Answer<void> added = subscription.type == EventType::kClock
                                 ? AddClock(subscription.clock, wait)
                                 : AddDescriptor(subscription.clock.id, wait);
  if (!added) {
    wait.error = added.error().error;
  }
  waits_.push_back(std::move(wait));
}

Answer<void> PollCall::AddClock(const SubscriptionClock& clock, Wait& wait) const {
  wait.clock = BH_WASI_TRY(HostClock(clock.id));
  if (wait.clock != CLOCK_REALTIME && wait.clock != CLOCK_MONOTONIC) {
    return Refuse(Errno::kNotsup);  // a sleeper uses no CPU time, so it would never wake
  }
  if ((clock.flags & ~kSubclockAbstime) != 0) {
    return Refuse(Errno::kInval);
  }
  wait.due_ns = clock.timeout_ns;
  if ((clock.flags & kSubclockAbstime) == 0) {
    // An interval does not change when somebody sets the realtime clock.
    wait.clock = CLOCK_MONOTONIC;
    const std::uint64_t now = BH_WASI_TRY(NowNanoseconds(wait.clock));
    if (__builtin_add_overflow(now, clock.timeout_ns, &wait.due_ns)) {
      wait.due_ns = std::numeric_limits<std::uint64_t>::max();
    }
  }
  return {};
}

Answer<void> PollCall::AddDescriptor(std::uint32_t fd, Wait& wait) {
  const bool reads = wait.type == EventType::kFdRead;
  const Rights needed = rights::kPollFdReadwrite | (reads ? rights::kFdRead : rights::kFdWrite);
  wait.descriptor = BH_WASI_TRY(call_.wasi().descriptors().Find(fd, needed)).descriptor;
  const BorrowedFd host = wait.descriptor->poll_fd();
  wait.poll_index = host.valid() ? PollIndex(host.get(), reads ? POLLIN : POLLOUT) : 0;
  return {};
}

// One entry per host descriptor: ppoll(2) refuses more entries than the process may have
// descriptors.
std::size_t PollCall::PollIndex(int fd, short events) {
  const auto known = std::find_if(polled_.begin() + 1, polled_.end(),
                                  [&](const pollfd& entry) { return entry.fd == fd; });
  if (known != polled_.end()) {
    known->events = static_cast<short>(known->events | events);
    return static_cast<std::size_t>(known - polled_.begin());
  }
  polled_.push_back({fd, events, 0});
  return polled_.size() - 1;
}

Answer<std::vector<Event>> PollCall::Run() {
  const bool block = std::none_of(waits_.begin(), waits_.end(),
                                  [&](const Wait& wait) { return ReadyAtOnce(wait); });
  while (true) {
    BH_WASI_TRY(PollOnce(block));
    if (polled_[0].revents != 0) {
      return EndGuest(Control::kStopped);
    }
    std::vector<Event> events = BH_WASI_TRY(Collect());
    // None although ppoll returned: the realtime clock was set back, or somebody else took what was
    // there.
    if (!events.empty()) {
      return events;
    }
  }
}

bool PollCall::ReadyAtOnce(const Wait& wait) const {
  return wait.error != Errno::kSuccess || (wait.descriptor != nullptr && wait.poll_index == 0);
}

Answer<void> PollCall::PollOnce(bool block) {
  std::uint64_t timeout_ns = block ? std::numeric_limits<std::uint64_t>::max() : 0;
  for (const Wait& wait : waits_) {
    if (wait.descriptor == nullptr && wait.error == Errno::kSuccess) {
      const std::uint64_t now = BH_WASI_TRY(NowNanoseconds(wait.clock));
      timeout_ns = std::min(timeout_ns, wait.due_ns - std::min(wait.due_ns, now));
    }
  }
  constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
  const timespec timeout{static_cast<time_t>(timeout_ns / kNanosecondsPerSecond),
                         static_cast<long>(timeout_ns % kNanosecondsPerSecond)};
  const bool forever = timeout_ns == std::numeric_limits<std::uint64_t>::max();
  if (ppoll(polled_.data(), polled_.size(), forever ? nullptr : &timeout, nullptr) < 0) {
    if (errno != EINTR) {
      return RefuseHost();
    }
    for (pollfd& entry : polled_) {
      entry.revents = 0;
    }
  }
  return {};
}

Answer<std::vector<Event>> PollCall::Collect() const {
  std::vector<Event> events;
  for (const Wait& wait : waits_) {
    Event event;
    bool ready = true;
    if (wait.error != Errno::kSuccess) {
      event.error = static_cast<std::uint16_t>(wait.error);
    } else if (wait.descriptor == nullptr) {
      ready = BH_WASI_TRY(NowNanoseconds(wait.clock)) >= wait.due_ns;
    } else {
      const short wanted = wait.type == EventType::kFdRead ? POLLIN : POLLOUT;
      const int got = polled_[wait.poll_index].revents;
      ready = wait.poll_index == 0 || (got & (wanted | POLLERR | POLLHUP | POLLNVAL)) != 0;
      if (ready) {
        event = DescriptorEvent(wait);
      }
    }
    if (ready) {
      event.userdata = wait.userdata;
      event.type = wait.type;
      events.push_back(event);
    }
  }
  return events;
}

Event PollCall::DescriptorEvent(const Wait& wait) const {
  Event event;
  const bool reads = wait.type == EventType::kFdRead;
  const int got = wait.poll_index == 0 ? 0 : polled_[wait.poll_index].revents;
  const bool at_end = reads && (got & POLLIN) == 0;
  event.bytes = reads ? wait.descriptor->BytesReadable() : 0;
  if (at_end && wait.poll_index != 0) {
    event.bytes = 0;
  }
  if ((got & (POLLHUP | POLLERR)) != 0 || (at_end && event.bytes == 0)) {
    event.flags = kEventHangup;
  }
  return event;
}

Answer<std::vector<Subscription>> ReadSubscriptions(const Call& call) {
  const std::uint32_t count = call.U32(2);
  if (count == 0 || count > kSubscriptionsMax) {
    return Refuse(Errno::kInval);
  }
  const auto bytes = BH_WASI_TRY(call.Span(0, std::uint64_t{count} * sizeof(Subscription)));
  std::vector<Subscription> subscriptions(count);
  std::memcpy(subscriptions.data(), bytes.data(), bytes.size());
  for (const Subscription& subscription : subscriptions) {
    if (subscription.type > EventType::kFdWrite) {
      return Refuse(Errno::kInval);
    }
  }
  return subscriptions;
}

}  // namespace

Answer<void> PollOneoff(Call& call) {
  BH_WASI_TRY(call.CheckOut<std::uint32_t>(3));
  const std::vector<Subscription> subscriptions = BH_WASI_TRY(ReadSubscriptions(call));
  const auto out = BH_WASI_TRY(call.Span(1, subscriptions.size() * sizeof(Event)));
  PollCall poll(call);
  for (const Subscription& subscription : subscriptions) {
    poll.Add(subscription);
  }
  const std::vector<Event> events = BH_WASI_TRY(poll.Run());
  std::memcpy(out.data(), events.data(), events.size() * sizeof(Event));
  return call.Put(3, static_cast<std::uint32_t>(events.size()));
}

}  // namespace bulkhead::wasi
