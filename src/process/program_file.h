// The file to execute: why the kernel refused it, in words; and a digest of it.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace bulkhead::process {

// What errno alone does not say about a failed exec ("it is a directory", "its interpreter '/x'
// does not exist"); empty if there is nothing to add.
std::string ExplainExecFailure(const std::string& program, int sys_errno);

struct VerifiedProgram {
  UniqueFd file;
  std::int64_t changed_ns = 0;  // change time (ctime) before it was hashed
};

// Opens `program` and compares its SHA-256 with `expected_hex` (64 hex digits, any case). The
// descriptor returned is of the file that was hashed. Scripts are refused: their interpreter would
// open the path again.
Result<VerifiedProgram> OpenVerifiedProgram(const std::string& program,
                                            std::string_view expected_hex);

bool WasWrittenTo(const VerifiedProgram& program);

}  // namespace bulkhead::process
