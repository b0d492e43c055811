#include "base/unique_fd.h"

#include <unistd.h>

#include <cerrno>

namespace bulkhead {

void UniqueFd::Reset(int fd) noexcept {
  const int old = std::exchange(fd_, fd);
  if (old >= 0) {
    const int saved = errno;
    close(old);  // on Linux the descriptor is gone whatever close() says
    errno = saved;
  }
}

}  // namespace bulkhead
