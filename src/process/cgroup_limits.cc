#include "process/cgroup_limits.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <string_view>

#include "base/errno_error.h"
#include "base/text_file.h"

namespace bulkhead::process {
namespace {

// A little always stays charged for a while: caches of the processors, dying kernel objects.
constexpr std::uint64_t kLeftBytesMax = 16ULL << 20;

// The kernel kills for no allocation that is larger: what is in use then is less than this below
// the limit.
constexpr std::uint64_t kLargestChargeBytes = 64U << 10;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

constexpr char kV1Limit[] = "memory.limit_in_bytes";
// Memory and swap together; missing where swap is not counted.
constexpr char kV1SwapLimit[] = "memory.memsw.limit_in_bytes";
constexpr char kV1Peak[] = "memory.max_usage_in_bytes";
constexpr char kV1Failures[] = "memory.failcnt";
constexpr char kV1SwapFailures[] = "memory.memsw.failcnt";
constexpr char kV2Limit[] = "memory.max";
constexpr char kV2SwapLimit[] = "memory.swap.max";
constexpr char kV2Group[] = "memory.oom.group";
constexpr char kV2Peak[] = "memory.peak";
constexpr char kTasksLimit[] = "pids.max";

std::uint64_t Sum(std::uint64_t a, std::uint64_t b) {
  return a > kNoLimit - b ? kNoLimit : a + b;
}

Result<std::uint64_t> ParseNumber(std::string_view text, std::string_view name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) {
    return Fail(ErrorCode::kIo, std::string(name) + ": no number");
  }
  return number;
}

// The number behind `key` in lines of a word and a number each.
Result<std::uint64_t> FindCount(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return ParseNumber(line.substr(key.size() + 1), key);
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return Fail(ErrorCode::kUnsupported, std::string(key) + ": not counted");
}

bool HasWord(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ';
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || text[end] == ' ' || text[end] == '\n')) {
      return true;
    }
  }
  return false;
}

bool Offer(BorrowedFd directory, const std::string& controller) {
  const auto offered = [&] {
    const Result<std::string> below = ReadTextFile(directory, "cgroup.subtree_control");
    return below && HasWord(*below, controller);
  };
  const Result<std::string> own = ReadTextFile(directory, "cgroup.controllers");
  if (!own || !HasWord(*own, controller)) {
    return false;
  }
  return offered() ||
         (WriteTextFile(directory, "cgroup.subtree_control", "+" + controller) && offered());
}

}  // namespace

CgroupControllers OfferControllers(BorrowedFd directory) {
  return {Offer(directory, "memory"), Offer(directory, "pids")};
}

CgroupLimiter::CgroupLimiter(BorrowedFd directory, CgroupKind kind)
    : directory_(directory),
      v2_(kind == CgroupKind::kV2),
      controllers_{Has(v2_ ? kV2Limit : kV1Limit), Has(kTasksLimit)} {}

bool CgroupLimiter::Has(const char* file) const {
  return faccessat(directory_.get(), file, W_OK, 0) == 0;
}

Status CgroupLimiter::Begin(const TreeLimits& limits) {
  if (controllers_.tasks) {
    const std::uint64_t left = limits.tasks == 0 ? 0 : BH_TRY(ReadNumber("pids.current"));
    BH_TRY(WriteTextFile(directory_, kTasksLimit,
                         limits.tasks == 0 ? "max" : std::to_string(Sum(left, limits.tasks))));
  }
  if (!controllers_.memory) {
    return {};
  }
  if (v2_) {
    // The tree dies together, and at the limit instead of in swap. Kernels without the file have no
    // swap to limit, or kill one process, which is the worker but for odd workers.
    for (const auto& [file, value] : {std::pair{kV2Group, "1"}, std::pair{kV2SwapLimit, "0"}}) {
      if (Has(file)) {
        BH_TRY(WriteTextFile(directory_, file, value));
      }
    }
  }
  before_ = ReadCounts().value_or(Counts());
  memory_limit_ = 0;
  if (limits.memory_bytes == 0) {
    return WriteMemoryLimit(kNoLimit);
  }
  BH_TRY(SetMemoryLimit(limits.memory_bytes));
  if (!v2_) {
    BH_TRY(WriteTextFile(directory_, kV1Peak, "0"));  // starts again at what is in use
  }
  peak_before_ = ReadNumber(v2_ ? kV2Peak : kV1Peak).value_or(0);
  return {};
}

Status CgroupLimiter::LimitMemoryGrowth(std::uint64_t bytes) {
  return memory_limit_ == 0 ? Status() : SetMemoryLimit(bytes);
}

Status CgroupLimiter::SetMemoryLimit(std::uint64_t bytes) {
  const std::uint64_t now = BH_TRY(ReadNumber(v2_ ? "memory.current" : "memory.usage_in_bytes"));
  const std::uint64_t limit = Sum(now, bytes);
  BH_TRY(WriteMemoryLimit(limit));
  memory_limit_ = limit;
  return {};
}

// Version 1 keeps the limit of memory at or below the one of memory and swap at every moment:
// whichever order fits. Where swap is not counted only one of them exists.
Status CgroupLimiter::WriteMemoryLimit(std::uint64_t bytes) const {
  if (v2_) {
    return WriteTextFile(directory_, kV2Limit, bytes == kNoLimit ? "max" : std::to_string(bytes));
  }
  const std::string text = bytes == kNoLimit ? "-1" : std::to_string(bytes);
  if (!Has(kV1SwapLimit)) {
    return WriteTextFile(directory_, kV1Limit, text);
  }
  if (WriteTextFile(directory_, kV1SwapLimit, text)) {
    return WriteTextFile(directory_, kV1Limit, text);
  }
  BH_TRY(WriteTextFile(directory_, kV1Limit, text));
  return WriteTextFile(directory_, kV1SwapLimit, text);
}

std::optional<CgroupMemory> CgroupLimiter::Account() const {
  if (memory_limit_ == 0) {
    return std::nullopt;
  }
  const Result<Counts> counts = ReadCounts();
  if (!counts) {
    return std::nullopt;
  }
  CgroupMemory memory;
  memory.limit_bytes = memory_limit_;
  memory.oom_kills = counts->oom_kills - before_.oom_kills;
  // Version 2 has one peak for the life of the cgroup: it is this worker's if it rose.
  const std::uint64_t peak = ReadNumber(v2_ ? kV2Peak : kV1Peak).value_or(0);
  memory.peak_bytes = !v2_ || peak > peak_before_ ? peak : 0;
  // Some kernels do not count failures of version 1 (seen on 6.18); there the peak has to do.
  memory.limit_reached = counts->limit_hits > before_.limit_hits ||
                         (!v2_ && Sum(peak, kLargestChargeBytes) > memory_limit_);
  if (memory.peak_bytes == 0 && memory.limit_reached) {
    memory.peak_bytes = memory_limit_;
  }
  return memory;
}

bool CgroupLimiter::clean() const {
  if (!controllers_.memory) {
    return true;
  }
  const Result<std::uint64_t> left = ReadNumber(v2_ ? "memory.current" : "memory.usage_in_bytes");
  const Result<Counts> counts = ReadCounts();
  return left && *left <= kLeftBytesMax && (!counts || counts->oom_kills == before_.oom_kills);
}

Result<CgroupLimiter::Counts> CgroupLimiter::ReadCounts() const {
  Counts counts;
  const char* const events = v2_ ? "memory.events" : "memory.oom_control";
  const std::string text = BH_TRY(ReadTextFile(directory_, events));
  counts.oom_kills = BH_TRY(FindCount(text, "oom_kill"));
  if (v2_) {
    counts.limit_hits = BH_TRY(FindCount(text, "oom"));
  } else {
    counts.limit_hits =
        Sum(ReadNumber(kV1Failures).value_or(0), ReadNumber(kV1SwapFailures).value_or(0));
  }
  return counts;
}

Result<std::uint64_t> CgroupLimiter::ReadNumber(const char* file) const {
  return ParseNumber(BH_TRY(ReadTextFile(directory_, file)), file);
}

}  // namespace bulkhead::process
