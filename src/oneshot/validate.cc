// The bounds of the request's value types, each violation in one sentence.
#include <bulkhead/run.h>

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "wire/messages.h"

namespace bulkhead {
namespace {

constexpr std::uint64_t kStackBytesMin = 64U << 10;
constexpr std::uint64_t kStackBytesMax = 64U << 20;  // each guest thread reserves it
constexpr std::uint32_t kThreadsMax = 1024;  // stacks of all of them at their largest are 64 GiB
constexpr std::uint64_t kMemoryBytesMin = 64U << 10;  // one WebAssembly page
constexpr std::size_t kSha256Digits = 64;

Status Require(bool legal, std::string message) {
  if (!legal) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  }
  return {};
}

bool IsAbsolute(const std::string& path) {
  return !path.empty() && path.front() == '/' && path.find('\0') == std::string::npos;
}

bool IsSha256(const std::string& text) {
  return text.size() == kSha256Digits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

Status WorkerConfig::Validate() const {
  BH_TRY(Require(IsAbsolute(executable),
                 fmt::format("worker executable {} is not an absolute path", Quoted(executable))));
  BH_TRY(Require(
      grace > std::chrono::nanoseconds::zero() && grace <= kGraceMax,
      fmt::format("grace of {} ns: more than 0 and at most 60 s are accepted", grace.count())));
  BH_TRY(Require(
      IsAbsolute(working_directory),
      fmt::format("working directory {} is not an absolute path", Quoted(working_directory))));
  BH_TRY(Require(!executable_sha256 || IsSha256(*executable_sha256),
                 "expected worker digest: 64 lower-case hexadecimal digits are accepted"));
  const std::vector<std::string> known = KnownMechanisms();
  for (const std::string& mechanism : required_mechanisms) {
    BH_TRY(Require(std::find(known.begin(), known.end(), mechanism) != known.end(),
                   fmt::format("required mechanism {}: accepted are {}",
                               Quoted(CutUtf8(mechanism, 64)), fmt::join(known, ", "))));
  }
  return {};
}

Status RunLimits::Validate() const {
  using std::chrono::nanoseconds;
  BH_TRY(Require(deadline > nanoseconds::zero(), "deadline: more than 0 is accepted"));
  BH_TRY(Require(compile_time > nanoseconds::zero(), "compile time: more than 0 is accepted"));
  BH_TRY(
      Require(!cpu_time || *cpu_time > nanoseconds::zero(), "CPU time: more than 0 is accepted"));
  BH_TRY(Require(!fuel || *fuel > 0, "fuel: at least 1 is accepted"));
  BH_TRY(Require(memory_bytes >= kMemoryBytesMin && memory_bytes <= (1ULL << 40),
                 fmt::format("memory of {} bytes: 64 KiB to 1 TiB are accepted", memory_bytes)));
  BH_TRY(Require(compile_memory_bytes >= (16U << 20) && compile_memory_bytes <= (1ULL << 40),
                 fmt::format("compile memory of {} bytes: 16 MiB to 1 TiB are accepted",
                             compile_memory_bytes)));
  BH_TRY(Require(threads_max >= 1 && threads_max <= kThreadsMax,
                 fmt::format("{} threads: 1 to {} are accepted", threads_max, kThreadsMax)));
  return Require(stack_bytes >= kStackBytesMin && stack_bytes <= kStackBytesMax,
                 fmt::format("stack of {} bytes: 64 KiB to 64 MiB are accepted", stack_bytes));
}

}  // namespace bulkhead
