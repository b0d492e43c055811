#include "base/directory_names.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>

#include "base/errno_error.h"

namespace bulkhead {

Result<std::vector<std::string>> NamesIn(BorrowedFd directory, const char* path,
                                         std::string_view shown) {
  struct Close {
    void operator()(DIR* stream) const { closedir(stream); }
  };

  UniqueFd own(openat(directory.get(), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own.valid()) {
    return Fail(ErrnoError("open", shown, errno));
  }
  const std::unique_ptr<DIR, Close> stream(fdopendir(own.get()));
  if (stream == nullptr) {
    return Fail(ErrnoError("fdopendir", shown, errno));
  }
  [[maybe_unused]] const int owned_by_stream = own.Release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(stream.get());  // NOLINT(concurrency-mt-unsafe): own stream
    if (entry == nullptr) {
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  if (errno != 0) {
    return Fail(ErrnoError("readdir", shown, errno));
  }
  return names;
}

}  // namespace bulkhead
