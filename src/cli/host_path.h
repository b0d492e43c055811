// Paths of the host as the user typed them: any bytes, relative or not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::cli {

struct HostPath {
  std::string directory;  // never empty: "." for a bare name
  std::string leaf;       // empty for a path that ends in "/"
};

HostPath SplitPath(std::string_view path);

// Absolute and without links, nullopt if something of it does not exist or cannot be reached (errno
// says why).
std::optional<std::string> RealPath(const std::string& path);

// Why no file can be created in `directory`: a sentence, empty if one can.
std::string DirectoryFault(const std::string& directory);

}  // namespace bulkhead::cli
