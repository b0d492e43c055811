// Waiting that a stop can end. Any thread; holds nothing afterwards.
#pragma once

#include "base/unique_fd.h"
#include "wasi/answer.h"

namespace bulkhead::wasi {

// Waits until `fd` has one of `events` (or an error or hang-up) or the stop event fires, which ends
// the guest and wins when both are there. An invalid `stop` never fires.
Answer<void> WaitReady(BorrowedFd fd, short events, BorrowedFd stop);

// The same without waiting.
Answer<bool> IsReady(BorrowedFd fd, short events);

// Has the stop event fired?
bool Stopped(BorrowedFd stop);

}  // namespace bulkhead::wasi
