// The error kind of this folder. Stateless; any thread.
#pragma once

#include <bulkhead/result.h>

#include <string_view>

#include <tl/expected.hpp>

#include "base/errno_error.h"

namespace bulkhead::staging {

// kOutput: "<call> '<object>': <errno text>"; an empty object is left out.
inline tl::unexpected<Error> OutputFail(std::string_view call, std::string_view object,
                                        int sys_errno) {
  return Fail(ErrnoError(ErrorCode::kOutput, call, object, sys_errno));
}

}  // namespace bulkhead::staging
