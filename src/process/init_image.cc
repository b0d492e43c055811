#include "process/init_image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/errno_error.h"

// BH_INIT_PROGRAM is the built file.
__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    "kBulkheadInitBegin:\n"
    ".incbin \"" BH_INIT_PROGRAM
    "\"\n"
    "kBulkheadInitEnd:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const char kBulkheadInitBegin[];
extern "C" const char kBulkheadInitEnd[];

namespace bulkhead::process {
namespace {

// <linux/memfd.h> of older systems lacks it; kernels before 6.3 refuse it and need it not.
constexpr unsigned kExecutable = 0x0010;  // MFD_EXEC

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

UniqueFd MakeMemoryFile() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd file(memfd_create("bulkhead-init", kFlags | kExecutable));
  if (!file.valid() && errno == EINVAL) {
    file.Reset(memfd_create("bulkhead-init", kFlags));
  }
  return file;
}

}  // namespace

Result<UniqueFd> MakeInitImage() {
  UniqueFd file = MakeMemoryFile();
  if (!file.valid()) {
    return Fail(
        ErrnoError(errno == EACCES ? ErrorCode::kUnsupported : ErrorCode::kResourceExhausted,
                   "memfd_create", "init", errno));
  }
  const auto bytes = static_cast<std::size_t>(kBulkheadInitEnd - kBulkheadInitBegin);
  const ssize_t written = write(file.get(), kBulkheadInitBegin, bytes);
  if (written < 0 || static_cast<std::size_t>(written) != bytes) {
    return Fail(
        ErrnoError(ErrorCode::kResourceExhausted, "write", "init", written < 0 ? errno : ENOSPC));
  }
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return Fail(ErrnoError(ErrorCode::kUnsupported, "fcntl F_ADD_SEALS", "init", errno));
  }
  return file;
}

}  // namespace bulkhead::process
