// One entry as a file: a header that says what follows, and the code.
//
//   offset 0   magic "BHCODE\r\n"
//          8   u32 form (kEntryForm), u32 bytes of the header (kHeaderBytes), little-endian
//         16   the key
//         48   u64 bytes of the code
//         56   SHA-256 of the code
//         88   the code, to the end of the file
//
// Everything is checked at every use. Functions without state; any thread.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "codecache/key.h"

namespace bulkhead::codecache {

inline constexpr std::uint32_t kEntryForm = 1;
inline constexpr std::uint64_t kHeaderBytes = 88;

// Compiled code in an open file; the descriptor goes to the worker.
struct Code {
  UniqueFd file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Is `file` the whole entry of `key`, ours and nobody else's to change? The number of bytes of its
// code; kUnsupported with what is wrong with it, or kIo if it cannot be read.
Result<std::uint64_t> CheckEntry(BorrowedFd file, const Key& key);

// Writes header and code into `file`, which is empty, and syncs it.
Status WriteEntry(BorrowedFd file, const Key& key, const Code& code);

}  // namespace bulkhead::codecache
