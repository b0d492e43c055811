// `bulkhead cache`: looks after the compiled code on disk.
#include <bulkhead/code_cache.h>

#include <fmt/core.h>

#include <string>

#include "base/strings.h"
#include "cli/code_cache_place.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/info_json.h"
#include "cli/text_io.h"
#include "cli/units.h"

namespace bulkhead::cli {
namespace {

std::string EntriesText(std::uint64_t entries, std::uint64_t bytes) {
  return fmt::format("{} {}, {}", entries, entries == 1 ? "entry" : "entries", FormatSize(bytes));
}

std::string StatText(const std::string& directory, const CodeCacheStat& stat) {
  return fmt::format("{}: {} of {}\n", Printable(directory), EntriesText(stat.entries, stat.bytes),
                     FormatSize(stat.bytes_max));
}

std::string SweepText(const std::string& directory, const CodeCacheSweep& sweep) {
  std::string text;
  for (const std::string& problem : sweep.problems) {
    text += Printable(problem) + "\n";
  }
  return text + fmt::format("{}: {} removed, {} left\n", Printable(directory),
                            EntriesText(sweep.removed, sweep.removed_bytes),
                            EntriesText(sweep.entries, sweep.bytes));
}

int PrintStat(const CacheOptions& options, const CodeCache& cache) {
  const auto stat = cache.Stat();
  if (!stat) {
    Say(stat.error().message);
    return kExitFailed;
  }
  return PrintResult(options.json ? CacheStatJson(cache.directory(), *stat)
                                  : StatText(cache.directory(), *stat));
}

// Found faults are the command's result, and its status: 1 if there were any.
int PrintSweep(const CacheOptions& options, const CodeCache& cache) {
  const auto sweep = options.action == CacheOptions::Action::kVerify
                         ? cache.Verify()
                         : cache.Prune(options.bytes_max.value_or(CodeCacheOptions{}.bytes_max));
  if (!sweep) {
    Say(sweep.error().message);
    return kExitFailed;
  }
  const int printed = PrintResult(options.json ? CacheSweepJson(cache.directory(), *sweep)
                                               : SweepText(cache.directory(), *sweep));
  if (printed != kExitOk) {
    return printed;
  }
  return sweep->problems.empty() ? kExitOk : 1;
}

}  // namespace

int CmdCache(const CacheOptions& options) {
  const auto opened = OpenCache(options.cache);
  if (!opened || opened->cache == nullptr) {
    Say(opened ? opened->problem : opened.error().message);
    return kExitUsage;
  }
  return options.action == CacheOptions::Action::kStat ? PrintStat(options, *opened->cache)
                                                       : PrintSweep(options, *opened->cache);
}

}  // namespace bulkhead::cli
