// What the tests need of the host: directories and pipes of their own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "base/unique_fd.h"

namespace bulkhead::wasi {

// A directory of its own for one test, gone afterwards.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "wasi-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }

  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

  UniqueFd Open() const { return UniqueFd(open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); }

  void WriteFile(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
  }

  std::string ReadFile(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;

  static Pipe Make() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
};

}  // namespace bulkhead::wasi
