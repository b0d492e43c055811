// What became of a run, for people: one line, for traps and failures of ours a few more. Pure;
// everything that a guest or worker can choose is made printable.
#pragma once

#include <string>
#include <string_view>

#include "cli/run_options.h"
#include "cli/run_record.h"

namespace bulkhead::cli {

// Ends with a newline; empty when nothing is to be said (the reader of standard output left; with
// --quiet also completed runs and guests that chose their own exit code).
std::string RenderResult(const RunRecord& record, const RunOptions& options, bool colours);

// Untrusted text for the middle of a line.
std::string OneLine(std::string_view text);

// "SIGINT" for the signals that stop a run.
std::string SignalName(int signal);

}  // namespace bulkhead::cli
