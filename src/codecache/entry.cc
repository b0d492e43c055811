#include "codecache/entry.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/errno_error.h"

namespace bulkhead::codecache {
namespace {

constexpr std::string_view kMagic = "BHCODE\r\n";  // a transfer as text damages it
constexpr std::size_t kFormOffset = 8;
constexpr std::size_t kHeaderBytesOffset = 12;
constexpr std::size_t kKeyOffset = 16;
constexpr std::size_t kCodeBytesOffset = 48;
constexpr std::size_t kDigestOffset = 56;
static_assert(kDigestOffset + sizeof(Sha256Digest) == kHeaderBytes);
// Large enough that system calls do not show beside the hashing.
constexpr std::size_t kChunkBytes = std::size_t{256} << 10;

using Header = std::array<std::uint8_t, kHeaderBytes>;

void PutNumber(Header& header, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    header[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

std::uint64_t GetNumber(const Header& header, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i > 0; --i) {
    value = value << 8 | header[at + i - 1];
  }
  return value;
}

Header MakeHeader(const Key& key, std::uint64_t code_bytes, const Sha256Digest& digest) {
  Header header{};
  std::copy(kMagic.begin(), kMagic.end(), header.begin());
  PutNumber(header, kFormOffset, kEntryForm, sizeof kEntryForm);
  PutNumber(header, kHeaderBytesOffset, kHeaderBytes, sizeof(std::uint32_t));
  std::copy(key.digest.begin(), key.digest.end(), header.begin() + kKeyOffset);
  PutNumber(header, kCodeBytesOffset, code_bytes, sizeof code_bytes);
  std::copy(digest.begin(), digest.end(), header.begin() + kDigestOffset);
  return header;
}

// Fills `into` from `offset`; fewer bytes only at the end of the file.
Result<std::size_t> ReadAt(BorrowedFd file, std::uint64_t offset, std::span<std::uint8_t> into) {
  std::size_t filled = 0;
  while (filled < into.size()) {
    const ssize_t got = pread(file.get(), into.data() + filled, into.size() - filled,
                              static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return Fail(ErrnoError(ErrorCode::kIo, "read", "compiled code", errno));
    }
    if (got == 0) {
      break;
    }
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

Status WriteAt(BorrowedFd file, std::uint64_t offset, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno != EINTR) {
      return Fail(ErrnoError("write", "cache entry", errno));
    }
    const auto advanced = static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    offset += advanced;
    bytes = bytes.subspan(advanced);
  }
  return {};
}

// Hands the code to `use` piece by piece, each with its place in it; false if the file ends before.
template <class Use>
Result<bool> ForEachPiece(BorrowedFd file, std::uint64_t offset, std::uint64_t bytes, Use use) {
  std::vector<std::uint8_t> chunk(std::min<std::uint64_t>(bytes, kChunkBytes));
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t wanted = std::min<std::uint64_t>(bytes - at, chunk.size());
    const std::size_t got = BH_TRY(ReadAt(file, offset + at, std::span(chunk).first(wanted)));
    if (got != wanted) {
      return false;
    }
    BH_TRY(use(at, std::span<const std::uint8_t>(chunk).first(got)));
    at += got;
  }
  return true;
}

tl::unexpected<Error> Wrong(std::string what) {
  return Fail(ErrorCode::kUnsupported, std::move(what));
}

Result<std::uint64_t> FileBytes(BorrowedFd file) {
  struct stat status{};
  if (fstat(file.get(), &status) != 0) {
    return Fail(ErrnoError("fstat", "cache entry", errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return Wrong("it is no regular file");
  }
  if (status.st_uid != geteuid()) {
    return Wrong(fmt::format("it belongs to user {}", status.st_uid));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Wrong("others may write to it");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

Result<std::uint64_t> CheckEntry(BorrowedFd file, const Key& key) {
  const std::uint64_t file_bytes = BH_TRY(FileBytes(file));
  Header header{};
  if (file_bytes <= kHeaderBytes || BH_TRY(ReadAt(file, 0, header)) != kHeaderBytes) {
    return Wrong("it ends within its header");
  }
  const std::uint64_t code_bytes = file_bytes - kHeaderBytes;
  if (GetNumber(header, kCodeBytesOffset, sizeof code_bytes) != code_bytes) {
    return Wrong("it is not as long as it says");
  }
  Sha256Digest digest{};
  std::copy_n(header.begin() + kDigestOffset, digest.size(), digest.begin());
  if (header != MakeHeader(key, code_bytes, digest)) {
    return Wrong("its header is that of another entry, or of none");
  }
  Sha256 sha = BH_TRY(Sha256::Create());
  const bool whole =
      BH_TRY(ForEachPiece(file, kHeaderBytes, code_bytes, [&](std::uint64_t, auto piece) -> Status {
        sha.Update(piece);
        return {};
      }));
  if (!whole || sha.Finish() != digest) {
    return Wrong("its content is not what was written");
  }
  return code_bytes;
}

Status WriteEntry(BorrowedFd file, const Key& key, const Code& code) {
  Sha256 sha = BH_TRY(Sha256::Create());
  const bool whole = BH_TRY(ForEachPiece(code.file.borrow(), code.offset, code.bytes,
                                         [&](std::uint64_t at, auto piece) -> Status {
                                           sha.Update(piece);
                                           return WriteAt(file, kHeaderBytes + at, piece);
                                         }));
  if (!whole) {
    return Fail(ErrorCode::kIo, "the compiled code is shorter than announced");
  }
  BH_TRY(WriteAt(file, 0, MakeHeader(key, code.bytes, sha.Finish())));
  while (fsync(file.get()) != 0) {
    if (errno != EINTR) {
      return Fail(ErrnoError("fsync", "cache entry", errno));
    }
  }
  return {};
}

}  // namespace bulkhead::codecache
