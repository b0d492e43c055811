// SHA-256 of an open file. Stateless; any thread.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace bulkhead::staging {

// Lower-case hex digest of the first `bytes` bytes; the file offset is neither used nor moved. kIo
// if the file is shorter or cannot be read.
Result<std::string> HashFile(BorrowedFd file, std::uint64_t bytes);

}  // namespace bulkhead::staging
