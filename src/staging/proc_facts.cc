#include "staging/proc_facts.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_error.h"
#include "base/unique_fd.h"
#include "staging/parse_number.h"

namespace bulkhead::staging {
namespace {

// The lines wanted here stand well inside the first page of their files.
constexpr std::size_t kProcFileBytesMax = 4096;

Result<std::string> ReadProcFile(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return Fail(ErrnoError("open", path, errno));
  }
  std::string text(kProcFileBytesMax, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = read(file.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      // A process that ends between open and read answers ESRCH.
      return Fail(
          ErrnoError(errno == ESRCH ? ErrorCode::kNotFound : ErrorCode::kIo, "read", path, errno));
    }
    if (got == 0) {
      break;
    }
    used += static_cast<std::size_t>(got);
  }
  text.resize(used);
  return text;
}

// The `index`th (from 0) of the fields of `text`, which single spaces separate.
std::string_view Field(std::string_view text, int index) {
  for (; index > 0; --index) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      return {};
    }
    text.remove_prefix(space + 1);
  }
  return text.substr(0, text.find_first_of(" \n"));
}

tl::unexpected<Error> Malformed(std::string_view path) {
  return Fail(ErrorCode::kIo, fmt::format("{} is not in the expected form", path));
}

Result<ProcessStat> ReadStat(const std::string& path) {
  const std::string line = BH_TRY(ReadProcFile(path));
  const std::optional<ProcessStat> stat = ParseProcessStat(line);
  if (!stat) {
    return Malformed(path);
  }
  return *stat;
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view line) {
  // Numbered from 1 in proc(5): pid, (name), state, 18 more, start time. The name may hold ") ", so
  // the fields behind it are found from the last parenthesis on.
  constexpr int kFieldsFromStateToStart = 22 - 3;
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > line.size()) {
    return std::nullopt;
  }
  const std::string_view fields = line.substr(name_end + 2);
  const std::string_view state = Field(fields, 0);
  const auto pid = ParseNumber<pid_t>(Field(line, 0));
  const auto start_ticks = ParseNumber<std::uint64_t>(Field(fields, kFieldsFromStateToStart));
  if (!pid || state.size() != 1 || !start_ticks) {
    return std::nullopt;
  }
  return ProcessStat{*pid, state.front(), *start_ticks};
}

Result<ProcessStat> ReadProcessStat(pid_t pid) {
  return ReadStat(fmt::format("/proc/{}/stat", pid));
}

Result<ProcessStat> ReadOwnStat() {
  return ReadStat("/proc/self/stat");
}

Result<mode_t> ReadUmask() {
  constexpr std::string_view kPath = "/proc/self/status";
  constexpr std::string_view kLabel = "\nUmask:\t";
  const std::string status = BH_TRY(ReadProcFile(std::string(kPath)));
  const std::size_t label = status.find(kLabel);
  if (label == std::string::npos) {
    return Malformed(kPath);
  }
  const std::string_view rest = std::string_view(status).substr(label + kLabel.size());
  const auto mask = ParseNumber<mode_t>(rest.substr(0, rest.find('\n')), 8);
  if (!mask) {
    return Malformed(kPath);
  }
  return *mask;
}

Result<std::string> ReadBootId() {
  constexpr std::string_view kPath = "/proc/sys/kernel/random/boot_id";
  const std::string uuid = BH_TRY(ReadProcFile(std::string(kPath)));
  std::string digits;
  for (const char c : uuid) {
    const bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (is_hex && digits.size() < kBootIdDigits) {
      digits += c;
    }
  }
  if (digits.size() != kBootIdDigits) {
    return Malformed(kPath);
  }
  return digits;
}

Result<std::uint64_t> ReadPidNamespace() {
  constexpr const char* kPath = "/proc/self/ns/pid";
  struct stat status{};
  if (stat(kPath, &status) != 0) {
    return Fail(ErrnoError("stat", kPath, errno));
  }
  return std::uint64_t{status.st_ino};
}

}  // namespace bulkhead::staging
