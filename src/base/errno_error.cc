#include "base/errno_error.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>

#include "base/strings.h"

namespace bulkhead {

std::string ErrnoText(int sys_errno) {
  const char* text = strerrordesc_np(sys_errno);
  return text != nullptr ? text : fmt::format("errno {}", sys_errno);
}

Error ErrnoError(ErrorCode code, std::string_view call, std::string_view object, int sys_errno) {
  std::string message = object.empty()
                            ? fmt::format("{}: {}", call, ErrnoText(sys_errno))
                            : fmt::format("{} {}: {}", call, Quoted(object), ErrnoText(sys_errno));
  return Error{code, std::move(message), sys_errno, {}};
}

Error ErrnoError(std::string_view call, std::string_view object, int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
      return ErrnoError(ErrorCode::kNotFound, call, object, sys_errno);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EDQUOT:
      return ErrnoError(ErrorCode::kResourceExhausted, call, object, sys_errno);
    default:
      return ErrnoError(ErrorCode::kIo, call, object, sys_errno);
  }
}

}  // namespace bulkhead
