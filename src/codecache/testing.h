// For the tests of this folder: a directory of one's own, code to keep, entries to spoil.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "codecache/store.h"

namespace bulkhead::codecache {

class TempDir {
 public:
  TempDir() {
    std::string form = (std::filesystem::temp_directory_path() / "bulkhead-cache-XXXXXX").string();
    path_ = mkdtemp(form.data());
    // Tests that change their user must be able to pass through.
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }

  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline void WriteFile(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Without the lock file, sorted.
inline std::vector<std::string> NamesOf(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename() != "lock") {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline Key KeyFor(std::string_view module) {
  return KeyOf({.module_sha256 = module, .engine = "e", .settings = "s", .processor = "p"});
}

inline Code CodeOf(std::string_view content) {
  Code code{UniqueFd(memfd_create("test", MFD_CLOEXEC)), 0, content.size()};
  EXPECT_EQ(pwrite(code.file.get(), content.data(), content.size(), 0),
            static_cast<ssize_t>(content.size()));
  return code;
}

inline std::string ContentOf(const Code& code) {
  std::string content(code.bytes, '\0');
  EXPECT_EQ(pread(code.file.get(), content.data(), content.size(), static_cast<off_t>(code.offset)),
            static_cast<ssize_t>(content.size()));
  return content;
}

// More than one piece of what is read at once, and not a multiple of it.
inline std::string LongContent() {
  std::string content;
  for (int i = 0; content.size() < 700'001; ++i) {
    content += std::to_string(i);
  }
  return content;
}

}  // namespace bulkhead::codecache
