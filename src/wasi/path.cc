#include "wasi/path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/strings.h"

namespace bulkhead::wasi {
namespace {

// The kernel gives up with EAGAIN when a rename elsewhere races with a lookup through "..". Another
// thread of the guest may provoke that on purpose, so patience ends.
constexpr int kLookupTriesMax = 16;

}  // namespace

bool IsUtf8(std::string_view text) {
  return ToValidUtf8(text) == text;
}

Answer<void> CheckPath(const std::string& path) {
  if (path.empty()) {
    return Refuse(Errno::kNoent);
  }
  if (path.size() > kPathBytesMax) {
    return Refuse(Errno::kNametoolong);
  }
  if (path.find('\0') != std::string::npos) {
    return Refuse(Errno::kInval);
  }
  if (!IsUtf8(path)) {
    return Refuse(Errno::kIlseq);
  }
  if (path.front() == '/') {
    return Refuse(Errno::kNotcapable);
  }
  return {};
}

Answer<UniqueFd> OpenBeneath(BorrowedFd dir, const std::string& path, int flags, unsigned mode) {
  open_how how = {};
  // openat2 refuses the flags that mean nothing together with O_PATH.
  const int always = (flags & O_PATH) != 0 ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  how.flags = static_cast<unsigned>(flags | always);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0;; ++tries) {
    const long fd = syscall(SYS_openat2, dir.get(), path.c_str(), &how, sizeof how);
    if (fd >= 0) {
      return UniqueFd(static_cast<int>(fd));
    }
    if (errno == EXDEV) {
      return Refuse(Errno::kNotcapable);
    }
    if (errno != EINTR && (errno != EAGAIN || tries == kLookupTriesMax)) {
      return RefuseHost();
    }
  }
}

Answer<EntryName> EntryName::Resolve(BorrowedFd dir, const std::string& path, Errno if_dots) {
  const std::size_t end = path.find_last_not_of('/') + 1;
  const std::size_t slash = end == 0 ? std::string::npos : path.rfind('/', end - 1);
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  std::string name = path.substr(begin, end - begin);
  if (name == "." || name == "..") {
    BH_WASI_TRY(OpenBeneath(dir, path, O_PATH | O_DIRECTORY));
    return Refuse(if_dots);
  }
  if (end != path.size()) {
    name += '/';
  }
  UniqueFd opened;
  if (begin != 0) {
    opened = BH_WASI_TRY(OpenBeneath(dir, path.substr(0, begin), O_PATH | O_DIRECTORY));
  }
  return EntryName(dir, std::move(opened), std::move(name));
}

}  // namespace bulkhead::wasi
