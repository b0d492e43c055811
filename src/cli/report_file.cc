#include "cli/report_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/errno_error.h"
#include "base/random_id.h"
#include "base/strings.h"
#include "cli/host_path.h"
#include "cli/text_io.h"
#include "cli/units.h"

namespace bulkhead::cli {
namespace {

constexpr std::size_t kNameRandomBytes = 8;
constexpr mode_t kReportMode = 0666;  // less the umask

tl::unexpected<Error> Refuse(const std::string& path, std::string_view why) {
  return Fail(ErrorCode::kOutput, fmt::format("{} {}", Quoted(path), why));
}

tl::unexpected<Error> RefuseErrno(const std::string& path, int sys_errno) {
  return Fail(ErrorCode::kOutput,
              fmt::format("cannot write {}: {}", Quoted(path), ErrnoText(sys_errno)), sys_errno);
}

// The number behind a path that means "a descriptor this process already has".
std::optional<int> DescriptorOf(std::string_view path) {
  if (path == "-" || path == "/dev/stderr") {
    return STDERR_FILENO;
  }
  if (path == "/dev/stdout") {
    return STDOUT_FILENO;
  }
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (path.starts_with(folder)) {
      const auto number = ParseCount(path.substr(folder.size()));
      constexpr std::uint64_t kDescriptorMax = 1U << 30U;
      return number && *number < kDescriptorMax ? std::optional<int>(static_cast<int>(*number))
                                                : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<ReportDestination> ReportDestination::Resolve(const std::string& path) {
  if (const auto fd = DescriptorOf(path)) {
    return ResolveDescriptor(path, *fd);
  }
  struct stat entry{};
  if (lstat(path.c_str(), &entry) != 0 || !S_ISLNK(entry.st_mode)) {
    return ResolveFile(path, path);
  }
  const auto target = RealPath(path);
  if (!target) {
    return Refuse(path, "is a symbolic link that leads nowhere");
  }
  return ResolveFile(path, *target);
}

Result<ReportDestination> ReportDestination::ResolveDescriptor(const std::string& path, int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
    return Refuse(path, "is not open for writing");
  }
  ReportDestination destination;
  destination.shown_ = path;
  destination.fd_ = BorrowedFd(fd);
  return destination;
}

Result<ReportDestination> ReportDestination::ResolveFile(const std::string& path,
                                                         const std::string& target) {
  ReportDestination destination;
  destination.shown_ = path;
  HostPath split = SplitPath(target);
  destination.directory_ = std::move(split.directory);
  destination.leaf_ = std::move(split.leaf);
  struct stat entry{};
  if (stat(target.c_str(), &entry) == 0 && !S_ISREG(entry.st_mode)) {
    if (S_ISDIR(entry.st_mode)) {
      return Refuse(path, "is a directory");
    }
    destination.kind_ = Kind::kSpecialFile;
    return destination;
  }
  destination.kind_ = Kind::kRegularFile;
  if (destination.leaf_.empty()) {
    return Refuse(path, "does not name a file");
  }
  if (const std::string fault = DirectoryFault(destination.directory_); !fault.empty()) {
    return Fail(ErrorCode::kOutput, fmt::format("{}", fault));
  }
  return destination;
}

Status ReportDestination::Write(std::string_view text) const {
  switch (kind_) {
    case Kind::kDescriptor: {
      const Status written = WriteAll(fd_, text);
      return written ? written : RefuseErrno(shown_, written.error().sys_errno);
    }
    case Kind::kSpecialFile:
      return WriteSpecial(text);
    case Kind::kRegularFile:
      return Replace(text);
  }
  return {};
}

Status ReportDestination::WriteSpecial(std::string_view text) const {
  // O_NONBLOCK for the opening alone: a FIFO without a reader is an error, not a reason to wait for
  // ever.
  const UniqueFd file(open(shown_.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid() || fcntl(file.get(), F_SETFL, 0) != 0) {
    return RefuseErrno(shown_, errno);
  }
  const Status written = WriteAll(file.borrow(), text);
  return written ? written : RefuseErrno(shown_, written.error().sys_errno);
}

Status ReportDestination::Replace(std::string_view text) const {
  const UniqueFd directory(open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string name = fmt::format(".bulkhead-report-{}", RandomHex(kNameRandomBytes));
  const UniqueFd file(
      openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kReportMode));
  if (!file.valid()) {
    return RefuseErrno(shown_, errno);
  }
  int failed = 0;
  if (const Status written = WriteAll(file.borrow(), text); !written) {
    failed = written.error().sys_errno;
  } else if (fsync(file.get()) != 0 ||
             renameat(directory.get(), name.c_str(), directory.get(), leaf_.c_str()) != 0) {
    failed = errno;
  }
  if (failed != 0) {
    static_cast<void>(unlinkat(directory.get(), name.c_str(), 0));
    return RefuseErrno(shown_, failed);
  }
  return {};
}

}  // namespace bulkhead::cli
