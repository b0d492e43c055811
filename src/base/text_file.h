// Small kernel text files (/proc, cgroup control files) in one read or write.
#pragma once

#include <bulkhead/result.h>

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace bulkhead {

// Whole content of `path`, which is relative to `directory` unless it is absolute. Nothing is
// retried but EINTR: a kernel text file either answers or does not.
Result<std::string> ReadTextFile(BorrowedFd directory, const char* path);
Result<std::string> ReadTextFile(const char* path);
// The same for an open file, always from its beginning; `name` is for messages.
Result<std::string> ReadOpenTextFile(BorrowedFd file, std::string_view name);

// Writes `text` in one call, as control files demand; the file must exist.
Status WriteTextFile(BorrowedFd directory, const char* path, std::string_view text);

}  // namespace bulkhead
