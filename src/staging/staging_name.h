// Who owns a staging directory, and the directory name that says so. Values; any thread.
//
//   .bulkhead-staging-<pid>-<start ticks>-<boot id>-<pid namespace>-<random>
#pragma once

#include <bulkhead/result.h>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::staging {

// Identifies one process for as long as anything it left on disk exists: a pid alone is reused.
struct OwnerIdentity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string boot_id;  // kBootIdDigits lower-case hex digits
  std::uint64_t pid_namespace = 0;

  bool operator==(const OwnerIdentity&) const = default;

  // The calling process. Not valid in its forked children.
  static Result<OwnerIdentity> ReadSelf();
};

inline constexpr std::string_view kStagingPrefix = ".bulkhead-staging-";
// The one file inside a staging directory.
inline constexpr const char* kStagedFileName = "output";

// A fresh name, unguessable.
std::string MakeStagingName(const OwnerIdentity& owner);

// The owner in a name of exactly the form above; nothing for any other name.
std::optional<OwnerIdentity> ParseStagingName(std::string_view name);

}  // namespace bulkhead::staging
