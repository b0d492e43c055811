#include <bulkhead/run.h>

#include <fmt/core.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/strings.h"

namespace bulkhead {
namespace {

std::vector<std::filesystem::path> PlacesToLook() {
  std::vector<std::filesystem::path> places;
  // The library never changes the environment; a host that does must not do so meanwhile.
  const char* named = std::getenv("BULKHEAD_WORKER_DIR");  // NOLINT(concurrency-mt-unsafe)
  if (named != nullptr && *named != '\0') {
    places.emplace_back(named);
  }
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!self.empty()) {
    places.push_back(self.parent_path());
    places.push_back(self.parent_path().parent_path() / "libexec" / "bulkhead");
  }
  return places;
}

}  // namespace

Result<std::string> FindWorker(std::string_view program_name) {
  std::vector<std::string> tried;
  for (const std::filesystem::path& place : PlacesToLook()) {
    std::error_code ignored;
    const std::filesystem::path absolute = std::filesystem::absolute(place / program_name, ignored);
    if (std::filesystem::is_regular_file(absolute, ignored) &&
        access(absolute.c_str(), X_OK) == 0) {
      return absolute.string();
    }
    tried.push_back(Quoted(absolute.string()));
  }
  return Fail(
      ErrorCode::kNotFound,
      fmt::format("no worker program {}; looked for {} (BULKHEAD_WORKER_DIR names another folder)",
                  program_name, fmt::join(tried, ", ")));
}

}  // namespace bulkhead
