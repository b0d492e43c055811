// A level-triggered flag one can poll: an eventfd.
#pragma once

#include <bulkhead/result.h>

#include "base/unique_fd.h"

namespace bulkhead {

class EventFd {
 public:
  static Result<EventFd> Create();

  // Any thread, also a signal handler; errno preserved.
  void Signal() const noexcept;
  // Back to not signalled; true if it was signalled.
  bool Drain() const noexcept;

  BorrowedFd fd() const { return fd_.borrow(); }

 private:
  explicit EventFd(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace bulkhead
