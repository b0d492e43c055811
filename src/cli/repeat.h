// `bulkhead run --repeat`: one module many times, some of them at once, on spare workers.
#pragma once

#include <bulkhead/run.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/interrupt.h"
#include "cli/run_record.h"

namespace bulkhead::cli {

struct RepeatPlan {
  std::uint64_t runs = 1;
  std::uint32_t jobs = 1;
  bool keep_reports = false;  // as JSON lines
  BorrowedFd terminal;        // where the progress line is drawn, if valid
};

struct RepeatResult {
  std::map<std::string, std::uint64_t> codes;    // how many ended how
  std::vector<std::chrono::microseconds> times;  // of each run from its slot to its result
  std::chrono::microseconds elapsed{0};
  std::uint64_t warm = 0;       // runs on a spare worker
  std::uint64_t unstarted = 0;  // after a signal
  int exit_status = 0;          // of the first run that did not end with 0
  std::string first_problem;    // its sentence
  std::string reports;          // JSON lines, in the order of their ends
};

// What runs share beside the request. `record` is the part of every run's record that is known.
struct RepeatContext {
  Runtime& runtime;
  const AdmittedModule& module;
  const RunRequest& request;
  const RunRecord& record;
  const Interrupts& interrupts;
};

// Each run has the request's whole deadline from its own start. With one job guests write to the
// request's streams as they go; with more each guest's output is kept (of each stream the first
// kOutputKeptMax bytes) and written whole when it has ended. Bounded by the sum of the runs.
RepeatResult RunRepeatedly(const RepeatContext& context, const RepeatPlan& plan);
inline constexpr std::uint64_t kOutputKeptMax = 1U << 20;

// The lines for people. Pure.
std::string RenderRepeat(const RepeatResult& result, const RepeatPlan& plan);

// The value below which `percent` of the sorted values lie (nearest rank).
std::chrono::microseconds Percentile(const std::vector<std::chrono::microseconds>& sorted,
                                     double percent);

}  // namespace bulkhead::cli
