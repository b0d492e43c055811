#include "cli/text_io.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_error.h"
#include "base/strings.h"
#include "cli/exit_status.h"

namespace bulkhead::cli {

Status WriteAll(BorrowedFd fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd.get(), text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return Fail(ErrnoError("write", "", errno));
    }
  }
  return {};
}

int PrintResult(std::string_view text) {
  const Status written = WriteAll(BorrowedFd(STDOUT_FILENO), text);
  if (written) {
    return kExitOk;
  }
  if (written.error().sys_errno == EPIPE) {
    return kExitStdoutClosed;
  }
  Say(fmt::format("cannot write to standard output: {}", ErrnoText(written.error().sys_errno)));
  return kExitFailed;
}

void Say(std::string_view text) {
  // Nobody is left to tell if even standard error fails.
  static_cast<void>(
      WriteAll(BorrowedFd(STDERR_FILENO), fmt::format("bulkhead: {}\n", Printable(text))));
}

void EnsureStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      // The lowest free number is `fd`: the ones below are open. Meant to be inherited, hence no
      // CLOEXEC.
      static_cast<void>(open("/dev/null", O_RDWR));  // NOLINT(android-cloexec-open)
    }
  }
}

}  // namespace bulkhead::cli
