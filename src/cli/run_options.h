// The options of `bulkhead run` as values, every bound checked. Plain data.
#pragma once

#include <bulkhead/module.h>
#include <bulkhead/output_grant.h>
#include <bulkhead/result.h>
#include <bulkhead/run.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/code_cache_place.h"
#include "cli/raw_options.h"

namespace bulkhead::cli {

struct RunOptions {
  enum class Stdin : std::uint8_t { kEmpty, kInherited, kFile };

  std::string module_path;
  std::vector<std::string> guest_arguments;  // without the program name
  Profile profile = Profile::kAuto;
  RunLimits limits;
  std::chrono::nanoseconds grace = WorkerConfig{}.grace;
  SandboxLevel sandbox = SandboxLevel::kDefault;
  std::vector<std::string> required_mechanisms;
  std::optional<OutputGrant> output;  // path as given, not yet absolute
  std::vector<DirectoryGrant> directories;
  std::vector<std::string> environment;
  Stdin stdin_kind = Stdin::kEmpty;
  std::string stdin_path;  // of kFile
  CacheChoice cache;
  std::string report_path;  // empty: none; "-": standard error
  std::uint64_t repeat = 1;
  std::uint32_t jobs = 1;
  bool repeated = false;  // --repeat was given, be it with 1
  std::optional<int> status_fd;
  bool quiet = false;
};

// What --cache says, of any command that has it. kInvalidArgument as below.
Result<CacheChoice> MakeCacheChoice(const RawOptions& raw);

// kInvalidArgument: one sentence that starts with the option's name.
Result<RunOptions> MakeRunOptions(const RawOptions& raw);

}  // namespace bulkhead::cli
