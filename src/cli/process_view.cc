#include "cli/process_view.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "base/directory_names.h"
#include "base/errno_error.h"
#include "base/text_file.h"
#include "base/unique_fd.h"
#include "process/cgroup_location.h"
#include "process/cgroup_pool.h"
#include "process/pidfd.h"

namespace bulkhead::cli {
namespace {

constexpr std::string_view kBlank = " \t";

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines.push_back(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return lines;
}

ProcessView::Fields ParseStatus(std::string_view text) {
  ProcessView::Fields fields;
  for (const std::string_view line : Lines(text)) {
    if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      fields.emplace(line.substr(0, colon), Trimmed(line.substr(colon + 1)));
    }
  }
  return fields;
}

// A table in columns: the heading says where they start.
std::map<std::string, ProcessView::Limit> ParseLimits(std::string_view text) {
  std::map<std::string, ProcessView::Limit> limits;
  const std::vector<std::string_view> lines = Lines(text);
  if (lines.empty()) {
    return limits;
  }
  const std::size_t soft = lines[0].find("Soft Limit");
  const std::size_t hard = lines[0].find("Hard Limit");
  const std::size_t units = lines[0].find("Units");
  if (soft == std::string_view::npos || hard == std::string_view::npos ||
      units == std::string_view::npos) {
    return limits;
  }
  for (const std::string_view line : std::span(lines).subspan(1)) {
    if (line.size() > hard) {
      limits.emplace(Trimmed(line.substr(0, soft)),
                     ProcessView::Limit{std::string(Trimmed(line.substr(soft, hard - soft))),
                                        std::string(Trimmed(line.substr(hard, units - hard)))});
    }
  }
  return limits;
}

Result<std::string> LinkTarget(BorrowedFd directory, const std::string& path) {
  std::array<char, 4096> target;
  const ssize_t size = readlinkat(directory.get(), path.c_str(), target.data(), target.size());
  if (size < 0) {
    return Fail(ErrnoError("readlink", path, errno));
  }
  return std::string(target.data(), static_cast<std::size_t>(size));
}

Result<ProcessView::Root> ViewRoot(BorrowedFd process) {
  const UniqueFd root(openat(process.get(), "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    return Fail(ErrnoError("open", "root", errno));
  }
  struct statvfs system{};
  if (fstatvfs(root.get(), &system) != 0) {
    return Fail(ErrnoError("statvfs", "root", errno));
  }
  const std::vector<std::string> names = BH_TRY(NamesIn(root.borrow(), ".", "root"));
  return ProcessView::Root{names.empty(), (system.f_flag & ST_RDONLY) != 0};
}

Result<std::map<int, std::string>> ViewDescriptors(BorrowedFd process) {
  std::map<int, std::string> descriptors;
  for (const std::string& name : BH_TRY(NamesIn(process, "fd", "fd"))) {
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    const Result<std::string> target = LinkTarget(process, "fd/" + name);
    if (target) {  // else closed meanwhile
      descriptors.emplace(number, *target);
    }
  }
  return descriptors;
}

struct LimitFiles {
  const char* v2;
  process::CgroupKind v1_kind;
  const char* v1;
};

constexpr LimitFiles kMemoryLimit{"memory.max", process::CgroupKind::kV1Memory,
                                  "memory.limit_in_bytes"};
constexpr LimitFiles kTasksLimit{"pids.max", process::CgroupKind::kV1Pids, "pids.max"};

// Version 2 has the controller or version 1, never both.
Result<std::string> ViewLimit(std::string_view cgroups, const LimitFiles& files) {
  const std::string mounts = BH_TRY(ReadTextFile("/proc/self/mountinfo"));
  for (const auto& [kind, directory] : process::FindCgroupLocations(cgroups, mounts)) {
    const bool v2 = kind == process::CgroupKind::kV2;
    if (!process::IsLeafOfBulkhead(directory) || (!v2 && kind != files.v1_kind)) {
      continue;
    }
    Result<std::string> text = ReadTextFile((directory + "/" + (v2 ? files.v2 : files.v1)).c_str());
    if (text || text.error().code != ErrorCode::kNotFound) {
      return text ? Result<std::string>(text->substr(0, text->find('\n'))) : text;
    }
  }
  return std::string();
}

ProcessView::Parent ViewParent(std::string_view pid) {
  const auto text = ReadTextFile(fmt::format("/proc/{}/status", pid).c_str());
  if (!text) {
    return {};
  }
  const ProcessView::Fields fields = ParseStatus(*text);
  const auto value = [&](std::string_view name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : found->second;
  };
  // One number a namespace, its own last.
  const std::string numbers = value("NSpid");
  const bool first = numbers.ends_with("\t1") || numbers == "1";
  return {value("Name"), first};
}

}  // namespace

std::string_view ProcessView::Status(std::string_view name) const {
  const auto found = status.find(name);
  return found == status.end() ? std::string_view() : found->second;
}

Result<ProcessView> ViewProcess(pid_t pid) {
  const UniqueFd pidfd = BH_TRY(process::OpenPidfd(pid));
  const std::string path = fmt::format("/proc/{}", pid);
  const UniqueFd process(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!process.valid()) {
    return Fail(
        ErrnoError(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "open", path, errno));
  }
  const BorrowedFd at = process.borrow();
  ProcessView view;
  view.pid = pid;
  struct stat status_file{};
  if (const auto status = ReadTextFile(at, "status")) {
    view.status = ParseStatus(*status);
  }
  if (fstatat(at.get(), "status", &status_file, 0) == 0) {
    view.files_owner = status_file.st_uid;
  }
  if (const auto limits = ReadTextFile(at, "limits")) {
    view.limits = ParseLimits(*limits);
  }
  view.parent = ViewParent(view.Status("PPid"));
  view.cgroup = ReadTextFile(at, "cgroup");
  view.memory_limit = ViewLimit(view.cgroup.value_or(""), kMemoryLimit);
  view.tasks_limit = ViewLimit(view.cgroup.value_or(""), kTasksLimit);
  view.user_map = ReadTextFile(at, "uid_map");
  view.environment = ReadTextFile(at, "environ");
  view.root = ViewRoot(at);
  view.descriptors = ViewDescriptors(at);
  for (const std::string_view name : ProcessView::kNamespaces) {
    view.namespaces.emplace(name, LinkTarget(at, fmt::format("ns/{}", name)));
  }
  // A dead process has neither memory nor files, which would look like perfect containment.
  if (BH_TRY(process::HasExited(pidfd.borrow())) || view.status.empty() ||
      view.Status("State").starts_with('Z')) {
    return Fail(ErrorCode::kNotFound, fmt::format("process {} has ended", pid));
  }
  return view;
}

}  // namespace bulkhead::cli
