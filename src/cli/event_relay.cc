#include "cli/event_relay.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "cli/report_json.h"

namespace bulkhead::cli {

void EventRelay::OnStage(const RunEvent& event) {
  stage_.store(event.stage);
  worker_pid_.store(event.worker_pid);
  WriteLine(StageEventJson(task_, event));
}

void EventRelay::End(std::string_view code, int exit_status) {
  WriteLine(EndEventJson(code, exit_status));
}

void EventRelay::WriteLine(std::string_view line) {
  if (!status_.valid()) {
    return;
  }
  // A pipe that polls writable takes a line of this length whole (PIPE_BUF).
  pollfd ready{status_.get(), POLLOUT, 0};
  if (poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0) {
    [[maybe_unused]] const ssize_t written = write(status_.get(), line.data(), line.size());
  }
}

Status CheckStatusFd(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--status-fd: descriptor {} is not open", fd));
  }
  if ((flags & O_ACCMODE) == O_RDONLY) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--status-fd: descriptor {} is not open for writing", fd));
  }
  return {};
}

}  // namespace bulkhead::cli
