// What went wrong with Bulkhead itself. What became of the *work* is an Outcome (outcome.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

// Stable: the names are part of the interface (ErrorName, docs/outcomes.md), numbers are not.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,    // the caller passed something outside the documented bounds
  kNotFound,           // a named file, program or folder does not exist
  kIo,                 // a system call failed; sys_errno says how
  kResourceExhausted,  // descriptors, memory, processes or a configured budget are used up
  kUnsupported,        // this machine or build lacks a feature that was asked for
  kModuleRefused,      // admission refused the module; `reason` carries the refusal code
  kLaunch,             // a worker could not be started
  kProtocol,           // a peer broke the wire protocol
  kOutput,             // staging or publishing an output failed
  kShutdown,           // the runtime is shutting down
  kInternal,           // a bug of ours
};

// "invalid-argument", "not-found", ... Never returns an empty view.
std::string_view ErrorName(ErrorCode code);

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // one sentence for a person: what, where, what would be accepted
  int sys_errno = 0;    // the errno behind it, 0 if none
  std::string
      reason;  // machine-readable detail, e.g. a refusal code or a launch stage; may be empty
};

}  // namespace bulkhead
