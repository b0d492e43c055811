#include "staging/proc_facts.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/errno_error.h"
#include "base/text_file.h"
#include "staging/parse_number.h"

namespace bulkhead::staging {
namespace {

tl::unexpected<Error> Malformed(std::string_view path) {
  return Fail(ErrorCode::kIo, fmt::format("{} is not in the expected form", path));
}

}  // namespace

Result<mode_t> ReadUmask() {
  constexpr const char* kPath = "/proc/self/status";
  constexpr std::string_view kLabel = "\nUmask:\t";
  const std::string status = BH_TRY(ReadTextFile(kPath));
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
  constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  const std::string uuid = BH_TRY(ReadTextFile(kPath));
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
