// Words of the command line -> plain structs. An Error is kInvalidArgument and one sentence for a
// person, with a suggestion where one is near. Pure: looks at the words, not at the disk.
#pragma once

#include <bulkhead/result.h>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "cli/option_table.h"
#include "cli/run_options.h"

namespace bulkhead::cli {

struct InspectOptions {
  std::string module_path;
  bool json = false;
};

struct GuestPackOptions {
  std::string module_path;
  std::string output_path;
};

struct CacheOptions {
  enum class Action : std::uint8_t { kStat, kPrune, kVerify };

  Action action = Action::kStat;
  CacheChoice cache;
  std::optional<std::uint64_t> bytes_max;  // of kPrune
  bool json = false;
};

struct DoctorOptions {
  bool json = false;
};

struct AuditOptions {
  pid_t pid = 0;
  bool json = false;
};

struct VersionOptions {
  bool json = false;
};

struct HelpOptions {
  const CommandSpec* command = nullptr;  // nullptr: the overview
};

// Not in the table: used by the build to make the man page and the completions.
struct GenerateOptions {
  std::string what;  // "man", "bash", "zsh", "fish"
};

using Command =
    std::variant<RunOptions, InspectOptions, GuestPackOptions, CacheOptions, DoctorOptions,
                 AuditOptions, VersionOptions, HelpOptions, GenerateOptions>;

// `words` without the program name.
Result<Command> ParseOptions(std::span<const std::string_view> words);

}  // namespace bulkhead::cli
