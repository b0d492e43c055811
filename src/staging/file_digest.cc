#include "staging/file_digest.h"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/errno_error.h"
#include "base/strings.h"

namespace bulkhead::staging {
namespace {

// Large enough that system calls do not show beside the hashing.
constexpr std::uint64_t kChunkBytes = std::uint64_t{256} * 1024;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

tl::unexpected<Error> LibraryFailed() {
  return Fail(ErrorCode::kInternal, "the cryptographic library cannot compute SHA-256");
}

}  // namespace

Result<std::string> HashFile(BorrowedFd file, std::uint64_t bytes) {
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return LibraryFailed();
  }
  std::vector<std::byte> chunk(std::min(bytes, kChunkBytes));
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
    if (EVP_DigestUpdate(context.get(), chunk.data(), static_cast<std::size_t>(got)) != 1) {
      return LibraryFailed();
    }
    offset += static_cast<std::uint64_t>(got);
  }
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned int digest_bytes = 0;
  if (EVP_DigestFinal_ex(context.get(), digest.data(), &digest_bytes) != 1) {
    return LibraryFailed();
  }
  return ToHex(std::span(digest).first(digest_bytes));
}

}  // namespace bulkhead::staging
