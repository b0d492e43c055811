// The program that is pid 1 of a worker's namespace (apps/bulkhead-init), carried in this library
// so that there is no file to find, and none to replace.
#pragma once

#include <bulkhead/result.h>

#include "base/unique_fd.h"

namespace bulkhead::process {

// A sealed memory file with the program; to be executed by descriptor. kResourceExhausted, or
// kUnsupported where memory files cannot be executed.
Result<UniqueFd> MakeInitImage();

}  // namespace bulkhead::process
