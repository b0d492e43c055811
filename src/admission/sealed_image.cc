#include "admission/sealed_image.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "admission/byte_reader.h"
#include "admission/module_policy.h"
#include "base/check.h"
#include "base/errno_error.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace bulkhead::admission {
namespace {

constexpr const char* kImageName = "bulkhead-module";
// One read from a pipe: the usual pipe buffer.
constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
// One sendfile call: what the kernel moves at most anyway is above.
constexpr std::uint64_t kSendBytesMax = std::uint64_t{1} << 30;

Result<UniqueFd> CreateFile() {
  UniqueFd file(memfd_create(kImageName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) {
    return Fail(ErrnoError("memfd_create", kImageName, errno));
  }
  return file;
}

// Writing fails only for want of memory, whatever errno calls it.
Error WriteError(int sys_errno) {
  const ErrorCode code = sys_errno == ENOSPC || sys_errno == ENOMEM || sys_errno == EDQUOT
                             ? ErrorCode::kResourceExhausted
                             : ErrorCode::kIo;
  return ErrnoError(code, "write", kImageName, sys_errno);
}

Status WriteAll(BorrowedFd file, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return Fail(WriteError(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return {};
}

// A descriptor that came to us may be non-blocking.
Status AwaitReadable(BorrowedFd source, std::string_view name) {
  pollfd entry = {source.get(), POLLIN, 0};
  while (poll(&entry, 1, -1) < 0) {
    if (errno != EINTR) {
      return Fail(ErrnoError("poll", name, errno));
    }
  }
  return {};
}

// Copies from one descriptor to another until the source ends.
class Copy {
 public:
  Copy(BorrowedFd source, BorrowedFd target, std::string_view name, std::uint64_t limit)
      : source_(source), target_(target), name_(name), limit_(limit) {}

  // The bytes copied; above the limit by one at most, which is a refusal.
  Result<std::uint64_t> Run() {
    for (;;) {
      const ssize_t moved = in_kernel_ ? Send() : BH_TRY(ReadAndWrite());
      if (moved == 0) {
        return copied_;
      }
      if (moved < 0) {
        BH_TRY(Recover(static_cast<int>(-moved)));
        continue;
      }
      copied_ += static_cast<std::uint64_t>(moved);
      if (copied_ > limit_) {
        return Refused("module-too-large",
                       fmt::format("module {} has more than {} bytes", Quoted(name_), limit_));
      }
    }
  }

 private:
  std::uint64_t Wanted(std::uint64_t at_most) const {
    return std::min(limit_ + 1 - copied_, at_most);
  }

  // Bytes moved, 0 at the end, or a negative errno.
  ssize_t Send() {
    const ssize_t sent = sendfile(target_.get(), source_.get(), nullptr,
                                  static_cast<std::size_t>(Wanted(kSendBytesMax)));
    return sent < 0 ? -errno : sent;
  }

  // As Send; a failed write is an error at once.
  Result<ssize_t> ReadAndWrite() {
    buffer_.resize(kChunkBytes);
    const ssize_t got =
        read(source_.get(), buffer_.data(), static_cast<std::size_t>(Wanted(kChunkBytes)));
    if (got < 0) {
      return -errno;
    }
    BH_TRY(WriteAll(target_, std::span(buffer_).first(static_cast<std::size_t>(got))));
    return got;
  }

  Status Recover(int sys_errno) {
    if (sys_errno == EINTR) {
      return {};
    }
    if (sys_errno == EAGAIN) {
      return AwaitReadable(source_, name_);
    }
    if (in_kernel_ && (sys_errno == EINVAL || sys_errno == ENOSYS)) {
      in_kernel_ = false;  // not a file that sendfile can read
      return {};
    }
    if (in_kernel_ && (sys_errno == ENOSPC || sys_errno == ENOMEM)) {
      return Fail(WriteError(sys_errno));
    }
    return Fail(ErrnoError("read", name_, sys_errno));
  }

  BorrowedFd source_;
  BorrowedFd target_;
  std::string_view name_;
  std::uint64_t limit_;
  std::uint64_t copied_ = 0;
  bool in_kernel_ = true;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace

Result<std::shared_ptr<const SealedImage>> SealedImage::ReadFrom(BorrowedFd source,
                                                                 std::string_view name,
                                                                 std::uint64_t bytes_max) {
  struct stat status = {};
  if (fstat(source.get(), &status) != 0) {
    return Fail(ErrnoError("fstat", name, errno));
  }
  if (S_ISDIR(status.st_mode)) {
    return Fail(ErrorCode::kIo, fmt::format("module {} is a directory, not a file", Quoted(name)),
                EISDIR);
  }
  if (S_ISREG(status.st_mode)) {
    BH_TRY_CONTEXT(CheckModuleBytes(static_cast<std::uint64_t>(status.st_size), bytes_max),
                   Quoted(name));
  }
  UniqueFd file = BH_TRY(CreateFile());
  const std::uint64_t bytes =
      BH_TRY(Copy(source, file.borrow(), name, ModuleBytesLimit(bytes_max)).Run());
  return Seal(std::move(file), bytes);
}

Result<std::shared_ptr<const SealedImage>> SealedImage::CopyOf(std::span<const std::uint8_t> bytes,
                                                               std::uint64_t bytes_max) {
  BH_TRY(CheckModuleBytes(bytes.size(), bytes_max));
  UniqueFd file = BH_TRY(CreateFile());
  BH_TRY(WriteAll(file.borrow(), bytes));
  return Seal(std::move(file), bytes.size());
}

Result<std::shared_ptr<const SealedImage>> SealedImage::Seal(UniqueFd file, std::uint64_t bytes) {
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) !=
      0) {
    return Fail(ErrnoError("fcntl F_ADD_SEALS", kImageName, errno));
  }
  std::span<const std::uint8_t> mapping;
  if (bytes > 0) {
    // Private, because older kernels refuse a shared mapping of a write-sealed file; the pages are
    // shared all the same.
    void* const address =
        mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (address == MAP_FAILED) {
      return Fail(ErrnoError("mmap", kImageName, errno));
    }
    mapping = {static_cast<const std::uint8_t*>(address), static_cast<std::size_t>(bytes)};
  }
  return std::shared_ptr<const SealedImage>(new SealedImage(std::move(file), mapping));
}

SealedImage::~SealedImage() {
  if (!bytes_.empty()) {
    munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
  }
}

const std::string& SealedImage::Sha256() const {
  std::call_once(sha256_once_, [this] {
    Result<bulkhead::Sha256> sha = bulkhead::Sha256::Create();
    BH_CHECK(sha.has_value());
    sha->Update(bytes_);
    sha256_ = ToHex(sha->Finish());
  });
  return sha256_;
}

}  // namespace bulkhead::admission
