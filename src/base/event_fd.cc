#include "base/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/errno_error.h"

namespace bulkhead {

Result<EventFd> EventFd::Create() {
  UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) {
    return Fail(ErrnoError("eventfd", "", errno));
  }
  return EventFd(std::move(fd));
}

void EventFd::Signal() const noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  // EAGAIN means the counter is at its maximum, i.e. already signalled.
  while (write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  errno = saved;
}

bool EventFd::Drain() const noexcept {
  std::uint64_t count = 0;
  return read(fd_.get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count);
}

}  // namespace bulkhead
