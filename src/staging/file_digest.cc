#include "staging/file_digest.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include "base/errno_error.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace bulkhead::staging {
namespace {

// Large enough that system calls do not show beside the hashing.
constexpr std::uint64_t kChunkBytes = std::uint64_t{256} * 1024;

}  // namespace

Result<std::string> HashFile(BorrowedFd file, std::uint64_t bytes) {
  Sha256 sha = BH_TRY(Sha256::Create());
  std::vector<std::uint8_t> chunk(std::min(bytes, kChunkBytes));
  for (std::uint64_t offset = 0; offset < bytes;) {
    const std::size_t wanted = std::min<std::uint64_t>(bytes - offset, chunk.size());
    const ssize_t got = pread(file.get(), chunk.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return Fail(ErrnoError(ErrorCode::kIo, "read the staged file", {}, errno));
    }
    if (got == 0) {
      return Fail(ErrorCode::kIo,
                  fmt::format("the staged file ends at {} of {} bytes", offset, bytes));
    }
    sha.Update(std::span(chunk).first(static_cast<std::size_t>(got)));
    offset += static_cast<std::uint64_t>(got);
  }
  return ToHex(sha.Finish());
}

}  // namespace bulkhead::staging
