#include "cli/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "cli/option_table.h"
#include "cli/units.h"

namespace bulkhead::cli {
namespace {

using std::chrono::nanoseconds;

// One WebAssembly page: with less no module with a memory starts.
constexpr std::uint64_t kMemoryBytesMin = 64ULL << 10U;
// More than machines have; a typo beyond it would only fail later.
constexpr std::uint64_t kMemoryBytesMax = 1ULL << 40U;
// The engine's compiler alone needs about this much.
constexpr std::uint64_t kCompileBytesMin = 16ULL << 20U;
constexpr std::uint64_t kStackBytesMin = 64ULL << 10U;
constexpr std::uint64_t kThreadsMax = 1024;
constexpr std::uint64_t kJobsMax = 256;  // more than a machine has processors for
constexpr std::uint64_t kStackBytesMax = 64ULL << 20U;
// File sizes are signed in the kernel's interface.
constexpr std::uint64_t kFileBytesMax = std::numeric_limits<std::int64_t>::max();

struct SizeBounds {
  std::uint64_t min;
  std::uint64_t max;
};

tl::unexpected<Error> Refuse(std::string_view option, std::string_view sentence) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", option, sentence));
}

// The value of `option` parsed with `parse`; nullopt if it was not given.
template <class T>
Result<std::optional<T>> Parsed(const RawOptions& raw, std::string_view option,
                                Result<T> (*parse)(std::string_view)) {
  const std::string* text = raw.Value(option);
  if (text == nullptr) {
    return std::optional<T>();
  }
  return std::optional<T>(BH_TRY_CONTEXT(parse(*text), option));
}

Result<std::optional<nanoseconds>> Duration(const RawOptions& raw, std::string_view option,
                                            nanoseconds max) {
  const auto duration = BH_TRY(Parsed<nanoseconds>(raw, option, ParseDuration));
  if (duration && *duration <= nanoseconds::zero()) {
    return Refuse(option, fmt::format("{} is not more than 0", Quoted(*raw.Value(option))));
  }
  if (duration && *duration > max) {
    return Refuse(option, fmt::format("{} is more than {} s", Quoted(*raw.Value(option)),
                                      std::chrono::floor<std::chrono::seconds>(max).count()));
  }
  return duration;
}

Result<std::optional<std::uint64_t>> Size(const RawOptions& raw, std::string_view option,
                                          SizeBounds bounds) {
  const auto size = BH_TRY(Parsed<std::uint64_t>(raw, option, ParseSize));
  if (size && (*size < bounds.min || *size > bounds.max)) {
    return Refuse(option, fmt::format("{} is outside {} to {}", Quoted(*raw.Value(option)),
                                      FormatSize(bounds.min), FormatSize(bounds.max)));
  }
  return size;
}

Result<std::optional<std::uint32_t>> Threads(const RawOptions& raw) {
  const auto threads = BH_TRY(Parsed<std::uint64_t>(raw, "--threads", ParseCount));
  if (!threads) {
    return std::nullopt;
  }
  if (*threads < 1 || *threads > kThreadsMax) {
    return Refuse("--threads", fmt::format("{} is outside 1 to {}", Quoted(*raw.Value("--threads")),
                                           kThreadsMax));
  }
  return static_cast<std::uint32_t>(*threads);
}

Result<RunLimits> MakeLimits(const RawOptions& raw) {
  RunLimits limits;
  limits.deadline =
      BH_TRY(Duration(raw, "--deadline", nanoseconds::max())).value_or(limits.deadline);
  limits.cpu_time = BH_TRY(Duration(raw, "--cpu-time", nanoseconds::max()));
  limits.fuel = BH_TRY(Parsed<std::uint64_t>(raw, "--fuel", ParseCount));
  if (limits.fuel == 0U) {
    return Refuse("--fuel", "'0' is not at least 1");
  }
  limits.memory_bytes = BH_TRY(Size(raw, "--memory", {kMemoryBytesMin, kMemoryBytesMax}))
                            .value_or(limits.memory_bytes);
  limits.compile_memory_bytes =
      BH_TRY(Size(raw, "--compile-memory", {kCompileBytesMin, kMemoryBytesMax}))
          .value_or(limits.compile_memory_bytes);
  limits.compile_time =
      BH_TRY(Duration(raw, "--compile-time", nanoseconds::max())).value_or(limits.compile_time);
  limits.threads_max = BH_TRY(Threads(raw)).value_or(limits.threads_max);
  limits.stack_bytes =
      BH_TRY(Size(raw, "--stack", {kStackBytesMin, kStackBytesMax})).value_or(limits.stack_bytes);
  limits.scratch_bytes = BH_TRY(Size(raw, "--scratch", {1, kMemoryBytesMax})).value_or(0);
  limits.stdout_bytes_max = BH_TRY(Size(raw, "--stdout-limit", {1, kFileBytesMax})).value_or(0);
  return limits;
}

Result<std::uint32_t> Jobs(const RawOptions& raw) {
  const auto jobs = BH_TRY(Parsed<std::uint64_t>(raw, "--jobs", ParseCount));
  if (!jobs) {
    return 1;
  }
  if (!raw.Has("--repeat")) {
    return Refuse("--jobs", "needs --repeat");
  }
  if (*jobs < 1 || *jobs > kJobsMax) {
    return Refuse("--jobs",
                  fmt::format("{} is outside 1 to {}", Quoted(*raw.Value("--jobs")), kJobsMax));
  }
  return static_cast<std::uint32_t>(*jobs);
}

Status SetRepetition(const RawOptions& raw, RunOptions& options) {
  options.jobs = BH_TRY(Jobs(raw));
  const auto runs = BH_TRY(Parsed<std::uint64_t>(raw, "--repeat", ParseCount));
  if (!runs) {
    return {};
  }
  if (*runs == 0) {
    return Refuse("--repeat", "'0' is not at least 1");
  }
  if (options.output) {
    return Refuse("--repeat", "with --output each run would replace the other's file");
  }
  if (options.stdin_kind == RunOptions::Stdin::kInherited) {
    return Refuse("--repeat", "standard input can be read once only; give a file or empty");
  }
  options.repeat = *runs;
  options.repeated = true;
  return {};
}

// One of the words that the table lists for `option`.
Result<std::string> Choice(const RawOptions& raw, std::string_view option) {
  const OptionSpec* spec = FindOption(*FindCommand("run"), option);
  const std::string* given = raw.Value(option);
  if (given == nullptr) {
    return std::string(spec->fallback);
  }
  if (std::find(spec->choices.begin(), spec->choices.end(), *given) != spec->choices.end()) {
    return *given;
  }
  return Refuse(option,
                fmt::format("{} is none of: {}", Quoted(*given), fmt::join(spec->choices, ", ")));
}

Result<SandboxLevel> Sandbox(const RawOptions& raw) {
  const std::string level = BH_TRY(Choice(raw, "--sandbox"));
  return level == "strict" ? SandboxLevel::kStrict
         : level == "none" ? SandboxLevel::kNone
                           : SandboxLevel::kDefault;
}

Result<std::vector<std::string>> RequiredMechanisms(const RawOptions& raw) {
  std::vector<std::string> required = raw.Values("--require");
  const std::vector<std::string> known = KnownMechanisms();
  for (const std::string& mechanism : required) {
    if (std::find(known.begin(), known.end(), mechanism) == known.end()) {
      return Refuse("--require",
                    fmt::format("{} is none of: {}", Quoted(mechanism), fmt::join(known, ", ")));
    }
  }
  return required;
}

Result<std::optional<OutputGrant>> MakeOutput(const RawOptions& raw) {
  OutputGrant grant;
  grant.bytes_max =
      BH_TRY(Size(raw, "--output-limit", {1, kFileBytesMax})).value_or(grant.bytes_max);
  grant.no_clobber = raw.Has("--no-clobber");
  const std::string* path = raw.Value("--output");
  if (path == nullptr) {
    for (const std::string_view dependent : {"--output-limit", "--no-clobber"}) {
      if (raw.Has(dependent)) {
        return Refuse(dependent, "has no meaning without --output");
      }
    }
    return std::optional<OutputGrant>();
  }
  grant.path = *path;
  return std::optional<OutputGrant>(std::move(grant));
}

// Where a guest finds a directory given without "::GUEST": under the same path, a relative one
// below "/".
Result<std::string> GuestPathOf(std::string_view option, std::string_view host) {
  std::string guest;
  std::string_view rest = host;
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    if (part == "..") {
      return Refuse(option,
                    fmt::format("{} leads upwards; name the guest's path as well: HOST::GUEST",
                                Quoted(host)));
    }
    if (!part.empty() && part != ".") {
      guest += fmt::format("/{}", part);
    }
  }
  return guest.empty() ? std::string("/") : guest;
}

Result<DirectoryGrant> MakeDirectory(std::string_view option, std::string_view value,
                                     bool writable) {
  constexpr std::string_view kSeparator = "::";
  const std::size_t split = value.rfind(kSeparator);
  DirectoryGrant grant;
  grant.host_path = value.substr(0, split);
  grant.writable = writable;
  if (grant.host_path.empty()) {
    return Refuse(option, "the host's directory is empty");
  }
  if (split == std::string_view::npos) {
    grant.guest_path = BH_TRY(GuestPathOf(option, grant.host_path));
    return grant;
  }
  grant.guest_path = value.substr(split + kSeparator.size());
  if (grant.guest_path.empty()) {
    return Refuse(option, "the guest's path is empty");
  }
  return grant;
}

Result<std::vector<DirectoryGrant>> MakeDirectories(const RawOptions& raw) {
  std::vector<DirectoryGrant> grants;
  for (const std::string_view option : {"--dir", "--dir-rw"}) {
    for (const std::string& value : raw.Values(option)) {
      grants.push_back(BH_TRY(MakeDirectory(option, value, option == "--dir-rw")));
    }
  }
  return grants;
}

Result<std::vector<std::string>> MakeEnvironment(const RawOptions& raw) {
  std::vector<std::string> environment = raw.Values("--env");
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      constexpr std::size_t kShownBytesMax = 64;
      return Refuse("--env", fmt::format("{} is not of the form K=V",
                                         Quoted(CutUtf8(entry, kShownBytesMax))));
    }
  }
  return environment;
}

Result<std::optional<int>> StatusFd(const RawOptions& raw) {
  const std::string* text = raw.Value("--status-fd");
  if (text == nullptr) {
    return std::optional<int>();
  }
  const auto number = ParseCount(*text);
  if (!number || *number > std::numeric_limits<int>::max()) {
    return Refuse("--status-fd", fmt::format("{} is not a descriptor number", Quoted(*text)));
  }
  return std::optional<int>(static_cast<int>(*number));
}

void SetStdin(const RawOptions& raw, RunOptions& options) {
  const std::string* from = raw.Value("--stdin");
  if (from == nullptr || *from == "empty") {
    return;
  }
  options.stdin_kind = *from == "-" ? RunOptions::Stdin::kInherited : RunOptions::Stdin::kFile;
  options.stdin_path = *from;
}

}  // namespace

Result<CacheChoice> MakeCacheChoice(const RawOptions& raw) {
  const std::string* given = raw.Value("--cache");
  if (given == nullptr) {
    return CacheChoice{};
  }
  if (given->empty()) {
    return Refuse("--cache", "the path is empty");
  }
  if (*given == "off") {
    return CacheChoice{CacheChoice::Kind::kOff, {}};
  }
  return CacheChoice{CacheChoice::Kind::kDirectory, *given};
}

Result<RunOptions> MakeRunOptions(const RawOptions& raw) {
  RunOptions options;
  options.module_path = raw.operands.front();
  options.guest_arguments = raw.arguments;
  const std::string profile = BH_TRY(Choice(raw, "--profile"));
  options.profile = ParseProfile(profile).value_or(Profile::kAuto);
  options.limits = BH_TRY(MakeLimits(raw));
  options.limits.cooperative_stop = BH_TRY(Choice(raw, "--stop-mode")) == "cooperative";
  options.grace = BH_TRY(Duration(raw, "--grace", WorkerConfig::kGraceMax)).value_or(options.grace);
  options.sandbox = BH_TRY(Sandbox(raw));
  options.required_mechanisms = BH_TRY(RequiredMechanisms(raw));
  options.output = BH_TRY(MakeOutput(raw));
  options.directories = BH_TRY(MakeDirectories(raw));
  options.environment = BH_TRY(MakeEnvironment(raw));
  SetStdin(raw, options);
  BH_TRY(SetRepetition(raw, options));
  options.cache = BH_TRY(MakeCacheChoice(raw));
  if (const std::string* report = raw.Value("--report")) {
    if (report->empty()) {
      return Refuse("--report", "the path is empty");
    }
    if (options.output && options.output->path == *report) {
      return Refuse("--report", "the same file as --output");
    }
    options.report_path = *report;
  }
  options.status_fd = BH_TRY(StatusFd(raw));
  options.quiet = raw.Has("--quiet");
  return options;
}

}  // namespace bulkhead::cli
