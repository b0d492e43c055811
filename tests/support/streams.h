// Pipes and files for the streams of a test's guest.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace bulkhead::test {

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

// Close-on-exec, blocking.
Pipe MakePipe();

// A file without a name that holds `content`, positioned at its beginning.
UniqueFd MemoryFile(std::string_view content);

// Everything until end of file, or until an error.
std::string ReadAll(BorrowedFd fd);

}  // namespace bulkhead::test
