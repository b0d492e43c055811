// Where the command keeps compiled code.
#pragma once

#include <bulkhead/code_cache.h>
#include <bulkhead/result.h>

#include <memory>
#include <string>

namespace bulkhead::cli {

// What --cache says.
struct CacheChoice {
  enum class Kind : std::uint8_t { kDefault, kOff, kDirectory };

  Kind kind = Kind::kDefault;
  std::string directory;  // of kDirectory
};

// $XDG_CACHE_HOME/bulkhead/code, else $HOME/.cache/bulkhead/code; kNotFound without both. Relative
// values do not count, as the XDG specification has it.
Result<std::string> DefaultCacheDirectory();

struct OpenedCache {
  std::shared_ptr<CodeCache> cache;  // nullptr: off
  std::string problem;               // why the default one cannot be used, empty if it can
};

// The default directory is a convenience: without it there is no cache. One that was named must be
// usable: kInvalidArgument.
Result<OpenedCache> OpenCache(const CacheChoice& choice);

}  // namespace bulkhead::cli
