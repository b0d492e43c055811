// From options to a request of the library: looks at the host's files with one clear sentence per
// fault, so that a bad destination is known before any work is done.
#pragma once

#include <bulkhead/result.h>
#include <bulkhead/run.h>

#include "base/unique_fd.h"
#include "cli/run_options.h"

namespace bulkhead::cli {

struct PreparedRun {
  RunRequest request;   // without cancel tokens
  UniqueFd stdin_file;  // keeps the descriptor in `request` open
};

// kInvalidArgument: a directory or the file for standard input cannot be used. kOutput: the
// output's destination cannot. kNotFound: there is no worker program.
Result<PreparedRun> PrepareRun(const RunOptions& options);

// `grant` with an absolute path in a directory that exists. Refuses what a rename would destroy:
// directories, devices and symbolic links; with no_clobber anything that exists.
Result<OutputGrant> ResolveOutput(OutputGrant grant);

}  // namespace bulkhead::cli
