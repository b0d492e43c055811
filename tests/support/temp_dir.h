// A directory of one test's own, removed with everything in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::test {

class TempDir {
 public:
  // Aborts the test program if it cannot be made.
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  const std::string& path() const { return path_; }

  std::string Path(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Creates or replaces a file; the path comes back.
  std::string Write(std::string_view name, std::string_view content) const;
  // Names of what is in it, sorted.
  std::vector<std::string> Entries() const;

 private:
  std::string path_;
};

// The whole file; "" if it cannot be read.
std::string ReadFile(const std::string& path);

}  // namespace bulkhead::test
