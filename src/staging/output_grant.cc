#include <bulkhead/output_grant.h>

#include <fmt/core.h>

#include <climits>
#include <limits>
#include <string_view>

#include "base/strings.h"

namespace bulkhead {
namespace {

// PATH_MAX counts the terminating NUL.
constexpr std::size_t kPathBytesMax = PATH_MAX - 1;
constexpr std::size_t kLeafBytesMax = NAME_MAX;
// File sizes are signed in the kernel's interface.
constexpr std::uint64_t kFileBytesMax = std::numeric_limits<std::int64_t>::max();

bool HasParentComponent(std::string_view path) {
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") {
      return true;
    }
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return false;
}

// What is wrong with the path, empty if nothing is.
std::string PathFault(std::string_view path) {
  if (path.empty()) {
    return "is empty";
  }
  if (path.find('\0') != std::string_view::npos) {
    return "contains a NUL byte";
  }
  if (path.front() != '/') {
    return "is not absolute";
  }
  if (HasParentComponent(path)) {
    return "contains a '..' component";
  }
  if (path.size() > kPathBytesMax) {
    return fmt::format("is longer than {} bytes", kPathBytesMax);
  }
  const std::string_view leaf = path.substr(path.rfind('/') + 1);
  if (leaf.empty() || leaf == ".") {
    return "does not end in a file name";
  }
  if (leaf.size() > kLeafBytesMax) {
    return fmt::format("ends in a name longer than {} bytes", kLeafBytesMax);
  }
  return {};
}

}  // namespace

Status OutputGrant::Validate() const {
  if (const std::string fault = PathFault(path); !fault.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("output path {} {}", Quoted(CutUtf8(path, kPathBytesMax)), fault));
  }
  if (bytes_max == 0 || bytes_max > kFileBytesMax) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("output limit of {} bytes is outside 1 to {}", bytes_max, kFileBytesMax));
  }
  return {};
}

}  // namespace bulkhead
