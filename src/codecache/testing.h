// For the tests of this folder: code to keep, entries to spoil.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing.h"
#include "codecache/store.h"

namespace bulkhead::codecache {

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
