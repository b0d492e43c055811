// All that the command knows of one run: the report of the library, or the same shape for a run
// that ended before there was one, and what the command adds. The human line, the JSON report and
// the exit status are made from it.
#pragma once

#include <bulkhead/error.h>
#include <bulkhead/run.h>

#include <cstdint>
#include <optional>
#include <string>

namespace bulkhead::cli {

struct ModuleFacts {
  std::string path;  // as given
  std::optional<std::uint64_t> bytes;
  std::optional<std::string> sha256;
  std::optional<Profile> profile;
};

struct RunRecord {
  RunReport report;
  ModuleFacts module;
  int signal = 0;  // the first one that asked to stop
  int exit_status = 0;
};

// Why there is no module to admit: not-found, unreadable, or admission's own reason.
Error ModuleFailure(Error error);

// An error of ours that ended the run before or instead of the library's report. What it says about
// the outcome:
//   reason = an outcome code (a stopped conversion) -> that outcome
//   kModuleRefused -> module-refused/<reason>     kInvalidArgument -> worker-invalid-configuration
//   kOutput -> worker-output-grant                everything else -> worker-launch
// The exit status is set as well; a worker program that does not exist (kNotFound) gives 127.
void RecordFailure(const Error& error, RunRecord& record);

}  // namespace bulkhead::cli
