#include "base/proc_stat.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>

#include "base/strings.h"
#include "base/text_file.h"

namespace bulkhead {
namespace {

// proc(5) numbers the fields of stat from 1 (pid), 2 (name), 3 (state).
constexpr std::size_t kStateField = 3;
constexpr std::size_t kParentField = 4;
constexpr std::size_t kGroupField = 5;
constexpr std::size_t kSessionField = 6;
constexpr std::size_t kThreadCountField = 20;
constexpr std::size_t kStartTimeField = 22;

std::string_view TakeWord(std::string_view& text) {
  const std::size_t start = text.find_first_not_of(" \t\n");
  if (start == std::string_view::npos) {
    text = {};
    return {};
  }
  const std::size_t end = std::min(text.find_first_of(" \t\n", start), text.size());
  const std::string_view word = text.substr(start, end - start);
  text.remove_prefix(end);
  return word;
}

template <class Number>
bool ParseNumber(std::string_view word, Number& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

tl::unexpected<Error> Malformed(std::string_view what, std::string_view text) {
  return Fail(ErrorCode::kIo,
              fmt::format("{}: not in the documented form: {}", what, Quoted(CutUtf8(text, 200))));
}

// "VmRSS:      1234 kB" -> bytes; 0 if the line is missing, as it is for a zombie.
Result<std::uint64_t> KilobyteLine(std::string_view status, std::string_view name) {
  const std::string label = fmt::format("\n{}:", name);
  const std::size_t at = status.find(label);
  if (at == std::string_view::npos) {
    return std::uint64_t{0};
  }
  std::string_view rest = status.substr(at + label.size());
  std::uint64_t kilobytes = 0;
  if (!ParseNumber(TakeWord(rest), kilobytes) || TakeWord(rest) != "kB") {
    return Malformed(name, status.substr(at + 1, label.size() + 32));
  }
  return kilobytes * 1024;
}

// A process that dies between open and read gives ESRCH: the same answer as "no such file".
tl::unexpected<Error> AsNotFound(Error error) {
  if (error.sys_errno == ESRCH) {
    error.code = ErrorCode::kNotFound;
  }
  return Fail(std::move(error));
}

}  // namespace

Result<ProcStat> ParseProcStat(std::string_view line) {
  ProcStat stat;
  const std::size_t name_start = line.find(" (");
  const std::size_t name_end = line.rfind(')');
  if (name_start == std::string_view::npos || name_end == std::string_view::npos ||
      name_end < name_start || !ParseNumber(line.substr(0, name_start), stat.pid)) {
    return Malformed("process stat", line);
  }
  std::array<std::string_view, kStartTimeField + 1> fields;
  std::string_view rest = line.substr(name_end + 1);
  for (std::size_t field = kStateField; field <= kStartTimeField; ++field) {
    fields.at(field) = TakeWord(rest);
  }
  if (fields[kStateField].size() != 1 || !ParseNumber(fields[kParentField], stat.parent) ||
      !ParseNumber(fields[kGroupField], stat.group) ||
      !ParseNumber(fields[kSessionField], stat.session) ||
      !ParseNumber(fields[kThreadCountField], stat.thread_count) ||
      !ParseNumber(fields[kStartTimeField], stat.start_time)) {
    return Malformed("process stat", line);
  }
  stat.state = fields[kStateField][0];
  return stat;
}

Result<MemoryUse> ParseMemoryUse(std::string_view status) {
  MemoryUse use;
  use.rss_bytes = BH_TRY(KilobyteLine(status, "VmRSS"));
  use.rss_bytes_peak = BH_TRY(KilobyteLine(status, "VmHWM"));
  use.data_bytes = BH_TRY(KilobyteLine(status, "VmData"));
  use.anonymous_rss_bytes = BH_TRY(KilobyteLine(status, "RssAnon"));
  return use;
}

Result<ProcStat> ReadProcStat(pid_t pid) {
  const Result<std::string> line = ReadTextFile(fmt::format("/proc/{}/stat", pid).c_str());
  return line ? ParseProcStat(*line) : AsNotFound(line.error());
}

Result<ProcStat> ReadOwnProcStat() {
  return ParseProcStat(BH_TRY(ReadTextFile("/proc/self/stat")));
}

Result<MemoryUse> ReadMemoryUse(pid_t pid) {
  const Result<std::string> status = ReadTextFile(fmt::format("/proc/{}/status", pid).c_str());
  return status ? ParseMemoryUse(*status) : AsNotFound(status.error());
}

Result<ProcessIdentity> IdentityOf(pid_t pid) {
  return BH_TRY(ReadProcStat(pid)).identity();
}

bool Alive(const ProcessIdentity& identity) {
  const Result<ProcStat> stat = ReadProcStat(identity.pid);
  return stat && stat->identity() == identity && !stat->dead();
}

}  // namespace bulkhead
