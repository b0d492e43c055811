#include "support/temp_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/unique_fd.h"

namespace bulkhead::test {

TempDir::TempDir() : path_(testing::TempDir() + "bulkhead-test-XXXXXX") {
  BH_CHECK(mkdtemp(path_.data()) != nullptr);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Write(std::string_view name, std::string_view content) const {
  const std::string path = Path(name);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  return path;
}

std::vector<std::string> TempDir::Entries() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadFile(const std::string& path) {
  std::string content;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 65536> buffer;
  for (;;) {  // a file of /proc may vanish between open and read
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      return content;
    }
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace bulkhead::test
