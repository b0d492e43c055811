#include "cli/host_path.h"

#include <fmt/core.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/errno_error.h"
#include "base/strings.h"

namespace bulkhead::cli {

HostPath SplitPath(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) {
    return {".", std::string(path)};
  }
  // "/name" is in "/".
  return {std::string(path.substr(0, slash == 0 ? 1 : slash)), std::string(path.substr(slash + 1))};
}

std::optional<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  if (real == nullptr) {
    return std::nullopt;
  }
  return std::string(real.get());
}

std::string DirectoryFault(const std::string& directory) {
  struct stat entry{};
  if (stat(directory.c_str(), &entry) != 0) {
    return errno == ENOENT ? fmt::format("the directory {} does not exist", Quoted(directory))
                           : fmt::format("the directory {} cannot be reached: {}",
                                         Quoted(directory), ErrnoText(errno));
  }
  if (!S_ISDIR(entry.st_mode)) {
    return fmt::format("{} is not a directory", Quoted(directory));
  }
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    return fmt::format("no file can be created in the directory {}: {}", Quoted(directory),
                       ErrnoText(errno));
  }
  return {};
}

}  // namespace bulkhead::cli
