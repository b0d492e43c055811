// errno -> Error, naming the call and the object it failed on.
#pragma once

#include <bulkhead/result.h>

#include <string_view>

namespace bulkhead {

// "open '/x/y': No such file or directory". ENOENT gives kNotFound; EMFILE, ENFILE, ENOMEM, EAGAIN
// from process creation and EDQUOT give kResourceExhausted; everything else kIo unless `code` says
// otherwise.
Error ErrnoError(std::string_view call, std::string_view object, int sys_errno);
Error ErrnoError(ErrorCode code, std::string_view call, std::string_view object, int sys_errno);

// Text of an errno, thread-safe, never empty.
std::string ErrnoText(int sys_errno);

}  // namespace bulkhead
