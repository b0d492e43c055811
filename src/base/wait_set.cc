#include "base/wait_set.h"

#include <cerrno>
#include <ctime>

#include "base/errno_error.h"

namespace bulkhead {
namespace {

timespec ToTimespec(std::chrono::nanoseconds duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
}

}  // namespace

void WaitSet::Clear() {
  fds_.clear();
  keys_.clear();
}

void WaitSet::Add(BorrowedFd fd, short events, int key) {
  if (fd.valid()) {
    fds_.push_back({fd.get(), events, 0});
    keys_.push_back(key);
  }
}

Result<bool> WaitSet::Wait(const Clock& clock, Deadline deadline) {
  for (;;) {
    const timespec left = ToTimespec(deadline.never() ? std::chrono::nanoseconds::zero()
                                                      : deadline.Remaining(clock.Now()));
    const int ready = ppoll(fds_.data(), fds_.size(), deadline.never() ? nullptr : &left, nullptr);
    if (ready >= 0) {
      return ready > 0;
    }
    if (errno != EINTR) {
      return Fail(ErrnoError("ppoll", "", errno));
    }
  }
}

short WaitSet::Ready(int key) const {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) {
      return fds_[i].revents;
    }
  }
  return 0;
}

}  // namespace bulkhead
