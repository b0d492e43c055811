#include "cli/run_request.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/errno_error.h"
#include "base/strings.h"
#include "cli/host_path.h"

namespace bulkhead::cli {
namespace {

tl::unexpected<Error> RefuseOutput(const std::string& path, std::string_view why) {
  return Fail(ErrorCode::kOutput, fmt::format("--output: {} {}", Quoted(path), why));
}

Status CheckDirectory(const DirectoryGrant& grant) {
  const std::string_view option = grant.writable ? "--dir-rw" : "--dir";
  struct stat entry{};
  if (stat(grant.host_path.c_str(), &entry) != 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}: {}", option, Quoted(grant.host_path), ErrnoText(errno)));
  }
  if (!S_ISDIR(entry.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} is not a directory", option, Quoted(grant.host_path)));
  }
  return {};
}

Result<UniqueFd> OpenStdin(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat entry{};
  if (!file.valid() || fstat(file.get(), &entry) != 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--stdin: {}: {}", Quoted(path), ErrnoText(errno)));
  }
  if (S_ISDIR(entry.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--stdin: {} is a directory", Quoted(path)));
  }
  return file;
}

// argv[0] as the guest sees it: a name says nothing about the host's folders.
std::string ProgramName(const std::string& module_path) {
  return SplitPath(module_path).leaf;
}

}  // namespace

Result<OutputGrant> ResolveOutput(OutputGrant grant) {
  const std::string given = std::exchange(grant.path, {});
  if (given.find('\0') != std::string::npos || given.empty()) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("--output: {} is no path", Quoted(given)));
  }
  const HostPath split = SplitPath(given);
  if (split.leaf.empty() || split.leaf == "." || split.leaf == "..") {
    return RefuseOutput(given, "does not name a file");
  }
  if (const std::string fault = DirectoryFault(split.directory); !fault.empty()) {
    return Fail(ErrorCode::kOutput, fmt::format("--output: {}", fault));
  }
  const auto directory = RealPath(split.directory);
  if (!directory) {
    return RefuseOutput(given, fmt::format("cannot be reached: {}", ErrnoText(errno)));
  }
  struct stat entry{};
  if (lstat(given.c_str(), &entry) == 0) {
    if (S_ISDIR(entry.st_mode)) {
      return RefuseOutput(given, "is a directory");
    }
    if (S_ISLNK(entry.st_mode)) {
      return RefuseOutput(given, "is a symbolic link; name the file itself");
    }
    if (!S_ISREG(entry.st_mode)) {
      return RefuseOutput(given, "is not a regular file");
    }
    if (grant.no_clobber) {
      return RefuseOutput(given, "exists already, and --no-clobber is given");
    }
  } else if (errno != ENOENT) {
    return RefuseOutput(given, fmt::format("cannot be a destination: {}", ErrnoText(errno)));
  }
  grant.path = fmt::format("{}{}{}", *directory, *directory == "/" ? "" : "/", split.leaf);
  return grant;
}

Result<PreparedRun> PrepareRun(const RunOptions& options) {
  PreparedRun prepared;
  RunRequest& request = prepared.request;
  request.worker.grace = options.grace;
  request.worker.sandbox = options.sandbox;
  request.worker.required_mechanisms = options.required_mechanisms;
  request.limits = options.limits;
  request.arguments.push_back(ProgramName(options.module_path));
  request.arguments.insert(request.arguments.end(), options.guest_arguments.begin(),
                           options.guest_arguments.end());
  request.environment = options.environment;
  for (const DirectoryGrant& grant : options.directories) {
    BH_TRY(CheckDirectory(grant));
  }
  request.directories = options.directories;
  if (options.output) {
    request.output = BH_TRY(ResolveOutput(*options.output));
  }
  if (options.stdin_kind == RunOptions::Stdin::kInherited) {
    request.stdin_from = GuestStream::Descriptor(STDIN_FILENO);
  } else if (options.stdin_kind == RunOptions::Stdin::kFile) {
    prepared.stdin_file = BH_TRY(OpenStdin(options.stdin_path));
    request.stdin_from = GuestStream::Descriptor(prepared.stdin_file.get());
  }
  request.stdout_to = GuestStream::Descriptor(STDOUT_FILENO);
  request.stderr_to = GuestStream::Descriptor(STDERR_FILENO);
  request.worker.executable = BH_TRY(FindWorker(kWasmWorkerName));
  return prepared;
}

}  // namespace bulkhead::cli
