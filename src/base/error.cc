#include <bulkhead/error.h>

namespace bulkhead {

std::string_view ErrorName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid-argument";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kResourceExhausted:
      return "resource-exhausted";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kModuleRefused:
      return "module-refused";
    case ErrorCode::kLaunch:
      return "launch";
    case ErrorCode::kProtocol:
      return "protocol";
    case ErrorCode::kOutput:
      return "output";
    case ErrorCode::kShutdown:
      return "shutdown";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

}  // namespace bulkhead
