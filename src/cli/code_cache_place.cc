#include "cli/code_cache_place.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string_view>
#include <utility>

namespace bulkhead::cli {
namespace {

// An absolute path in a variable, else empty.
std::string_view PathIn(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): before any thread
  return value != nullptr && *value == '/' ? value : std::string_view();
}

}  // namespace

Result<std::string> DefaultCacheDirectory() {
  if (const std::string_view cache = PathIn("XDG_CACHE_HOME"); !cache.empty()) {
    return fmt::format("{}/bulkhead/code", cache);
  }
  if (const std::string_view home = PathIn("HOME"); !home.empty()) {
    return fmt::format("{}/.cache/bulkhead/code", home);
  }
  return Fail(ErrorCode::kNotFound,
              "no cache of compiled code: neither XDG_CACHE_HOME nor HOME names a directory");
}

Result<OpenedCache> OpenCache(const CacheChoice& choice) {
  if (choice.kind == CacheChoice::Kind::kOff) {
    return OpenedCache{};
  }
  if (choice.kind == CacheChoice::Kind::kDirectory) {
    auto cache = CodeCache::Open({.directory = choice.directory});
    if (!cache) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("--cache: {}", cache.error().message),
                  cache.error().sys_errno);
    }
    return OpenedCache{*std::move(cache), {}};
  }
  const auto directory = DefaultCacheDirectory();
  auto cache = directory ? CodeCache::Open({.directory = *directory})
                         : Result<std::shared_ptr<CodeCache>>(Fail(directory.error()));
  return cache ? OpenedCache{*std::move(cache), {}}
               : OpenedCache{nullptr, std::move(cache).error().message};
}

}  // namespace bulkhead::cli
