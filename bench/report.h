// How the benchmarks print, and what they do when there is nothing to print.
#pragma once

#include <bulkhead/result.h>

#include <errno.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace bulkhead::bench {

template <class T>
T Must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, result.error().message.c_str());
    std::exit(1);
  }
  return *std::move(result);
}

inline void Must(const Status& status) {
  if (!status) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, status.error().message.c_str());
    std::exit(1);
  }
}

// name | figure | baseline in the same run | ratio | bar. A baseline of 0: there is none.
inline void Line(const std::string& name, double figure, const char* unit, double baseline,
                 const char* baseline_name, const char* bar) {
  if (baseline > 0) {
    std::printf("%-38s %9.2f %-6s| %9.2f %-28s | ratio %6.2f | %s\n", name.c_str(), figure, unit,
                baseline, baseline_name, figure / baseline, bar);
  } else {
    std::printf("%-38s %9.2f %-6s| %38s | %12s | %s\n", name.c_str(), figure, unit, "", "", bar);
  }
  std::fflush(stdout);
}

}  // namespace bulkhead::bench
