// What is in a directory. Stateless; any thread.
#pragma once

#include <bulkhead/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace bulkhead {

// The names in `path` (relative to `directory`), but for "." and "..", in the order of the file
// system. `shown` is its name in messages.
Result<std::vector<std::string>> NamesIn(BorrowedFd directory, const char* path,
                                         std::string_view shown);

}  // namespace bulkhead
