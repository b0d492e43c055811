// Writing of our own text to descriptors.
#pragma once

#include <bulkhead/result.h>

#include <string_view>

#include "base/unique_fd.h"

namespace bulkhead::cli {

// All of it, retrying interruptions. kIo with the errno (EPIPE when the reader left).
Status WriteAll(BorrowedFd fd, std::string_view text);

// Text that is the command's result, to standard output; the exit status: 0, 141 (quietly) when the
// reader left, 125 with a sentence on standard error otherwise.
int PrintResult(std::string_view text);

// "bulkhead: TEXT" on standard error, made printable; failures to write it are ignored.
void Say(std::string_view text);

// Opens /dev/null for each of the three standard descriptors that is closed, so that no file of
// ours gets its number.
void EnsureStandardDescriptors();

}  // namespace bulkhead::cli
