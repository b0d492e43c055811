#include "wasi/wait.h"

#include <poll.h>

#include <array>

namespace bulkhead::wasi {

Answer<void> WaitReady(BorrowedFd fd, short events, BorrowedFd stop) {
  // poll(2) skips negative descriptors, so an invalid stop needs no branch.
  std::array<pollfd, 2> entries = {pollfd{fd.get(), events, 0}, pollfd{stop.get(), POLLIN, 0}};
  while (true) {
    const int ready = ppoll(entries.data(), entries.size(), nullptr, nullptr);
    if (ready < 0 && errno != EINTR) {
      return RefuseHost();
    }
    if (ready > 0) {
      break;
    }
  }
  if (entries[1].revents != 0) {
    return EndGuest(Control::kStopped);
  }
  return {};
}

Answer<bool> IsReady(BorrowedFd fd, short events) {
  pollfd entry{fd.get(), events, 0};
  const timespec now{};
  while (true) {
    const int ready = ppoll(&entry, 1, &now, nullptr);
    if (ready >= 0) {
      return ready > 0;
    }
    if (errno != EINTR) {
      return RefuseHost();
    }
  }
}

bool Stopped(BorrowedFd stop) {
  const Answer<bool> fired = IsReady(stop, POLLIN);
  return fired && *fired;
}

}  // namespace bulkhead::wasi
