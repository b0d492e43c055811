// How a step of the lock-down fails.
#pragma once

#include <bulkhead/result.h>

#include <string_view>

#include "base/errno_error.h"

namespace bulkhead::worker {

// kLaunch; the mechanism is the reason, as HelloAck reports it.
inline tl::unexpected<Error> MechanismFailed(std::string_view mechanism, std::string_view call,
                                             std::string_view object, int sys_errno) {
  Error error = ErrnoError(ErrorCode::kLaunch, call, object, sys_errno);
  error.reason = mechanism;
  return Fail(std::move(error));
}

}  // namespace bulkhead::worker
