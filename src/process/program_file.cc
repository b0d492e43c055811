#include "process/program_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "base/errno_error.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace bulkhead::process {
namespace {

constexpr std::size_t kHashReadBytes = std::size_t{256} * 1024;

// What the kernel reads to find an interpreter (BINPRM_BUF_SIZE).
constexpr std::size_t kScriptLineBytesMax = 256;

UniqueFd OpenForReading(const std::string& path) {
  // Not blocking: the path may name a FIFO.
  return UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// The first bytes, as far as the kernel looks.
std::string Head(BorrowedFd file) {
  std::array<char, kScriptLineBytesMax> head;
  const ssize_t got = pread(file.get(), head.data(), head.size(), 0);
  return got > 0 ? std::string(head.data(), static_cast<std::size_t>(got)) : std::string();
}

// "/bin/sh" of "#!/bin/sh -e\n"; empty if this is no script.
std::string InterpreterOf(std::string_view head) {
  if (!head.starts_with("#!")) {
    return {};
  }
  std::string_view line = head.substr(2, head.find('\n') - 2);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

std::string ExplainMissing(const std::string& program) {
  if (access(program.c_str(), F_OK) != 0) {
    return {};
  }
  const std::string interpreter = InterpreterOf(Head(OpenForReading(program).borrow()));
  return interpreter.empty()
             ? "the file exists, but the loader it asks for does not"
             : fmt::format("the file exists, but its interpreter {} does not", Quoted(interpreter));
}

std::string ExplainDenied(const std::string& program) {
  struct stat status{};
  if (stat(program.c_str(), &status) != 0) {
    return "a directory on the way cannot be searched";
  }
  if (S_ISDIR(status.st_mode)) {
    return "it is a directory";
  }
  if (!S_ISREG(status.st_mode)) {
    return "it is not a regular file";
  }
  struct statvfs system{};
  if (statvfs(program.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0) {
    return "its file system is mounted noexec";
  }
  if (access(program.c_str(), X_OK) != 0) {
    return fmt::format("it is not executable (mode {:04o})", status.st_mode & 07777U);
  }
  const std::string interpreter = InterpreterOf(Head(OpenForReading(program).borrow()));
  return interpreter.empty()
             ? std::string()
             : fmt::format("its interpreter {} cannot be executed", Quoted(interpreter));
}

Result<std::string> Sha256Hex(BorrowedFd file, const std::string& name) {
  Sha256 sha = BH_TRY(Sha256::Create());
  std::vector<std::uint8_t> buffer(kHashReadBytes);
  off_t offset = 0;
  for (;;) {
    const ssize_t got = pread(file.get(), buffer.data(), buffer.size(), offset);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return Fail(ErrnoError("read", name, errno));
    }
    if (got == 0) {
      break;
    }
    sha.Update(std::span(buffer).first(static_cast<std::size_t>(got)));
    offset += got;
  }
  return ToHex(sha.Finish());
}

std::int64_t ChangeTime(const struct stat& status) {
  return std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec;
}

std::string LowerCase(std::string_view hex) {
  std::string out(hex);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

}  // namespace

std::string ExplainExecFailure(const std::string& program, int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
      return ExplainMissing(program);
    case EACCES:
      return ExplainDenied(program);
    case ENOEXEC:
      return "it is neither a program for this machine nor a script that starts with #!";
    case ETXTBSY:
      return "somebody has it open for writing";
    default:
      return {};
  }
}

Result<VerifiedProgram> OpenVerifiedProgram(const std::string& program,
                                            std::string_view expected_hex) {
  const std::string expected = LowerCase(expected_hex);
  if (expected.size() != 2 * sizeof(Sha256Digest) ||
      expected.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return Fail(ErrorCode::kLaunch, fmt::format("{} is not a SHA-256 digest: 64 hex digits are",
                                                Quoted(CutUtf8(expected_hex, 80))));
  }
  UniqueFd file = OpenForReading(program);
  if (!file.valid()) {
    return Fail(ErrnoError(ErrorCode::kLaunch, "open", program, errno));
  }
  struct stat status{};
  if (fstat(file.get(), &status) != 0) {
    return Fail(ErrnoError(ErrorCode::kLaunch, "fstat", program, errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kLaunch, "it is not a regular file");
  }
  if (Head(file.borrow()).starts_with("#!")) {
    return Fail(
        ErrorCode::kLaunch,
        "a script cannot be pinned by digest, because its interpreter opens the path again");
  }
  const std::string actual = BH_TRY(Sha256Hex(file.borrow(), program));
  if (actual != expected) {
    return Fail(ErrorCode::kLaunch,
                fmt::format("its SHA-256 is {}, expected was {}", actual, expected));
  }
  return VerifiedProgram{std::move(file), ChangeTime(status)};
}

bool WasWrittenTo(const VerifiedProgram& program) {
  struct stat status{};
  return fstat(program.file.get(), &status) != 0 || ChangeTime(status) != program.changed_ns;
}

}  // namespace bulkhead::process
