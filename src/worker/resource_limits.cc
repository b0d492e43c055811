#include "worker/resource_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <string_view>

#include "worker/mechanism_error.h"

namespace bulkhead::worker {
namespace {

// /proc/self/statm counts in pages: size resident shared text lib data dt. "data" is the private
// writable memory that RLIMIT_DATA bounds, plus the main thread's stack.
constexpr int kDataField = 5;

tl::unexpected<Error> Failed(std::string_view call, std::string_view object) {
  return MechanismFailed("rlimits", call, object, errno);
}

Status Lower(__rlimit_resource_t resource, std::string_view name, rlim_t soft, rlim_t hard) {
  rlimit present{};
  if (getrlimit(resource, &present) != 0) {
    return Failed("getrlimit", name);
  }
  const rlimit wanted{std::min(soft, present.rlim_max), std::min(hard, present.rlim_max)};
  if (setrlimit(resource, &wanted) != 0) {
    return Failed("setrlimit", name);
  }
  return {};
}

std::uint64_t SaturatingAdd(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

}  // namespace

Status ApplyResourceLimits(const ResourceLimits& limits) {
  BH_TRY(Lower(RLIMIT_CORE, "RLIMIT_CORE", 0, 0));
  BH_TRY(Lower(RLIMIT_FSIZE, "RLIMIT_FSIZE", limits.file_bytes_max, limits.file_bytes_max));
  BH_TRY(Lower(RLIMIT_NOFILE, "RLIMIT_NOFILE", limits.descriptors_max, limits.descriptors_max));
  if (limits.cpu_seconds != 0) {
    BH_TRY(
        Lower(RLIMIT_CPU, "RLIMIT_CPU", limits.cpu_seconds, SaturatingAdd(limits.cpu_seconds, 1)));
  }
  if (limits.data_bytes != 0) {
    BH_TRY(Lower(RLIMIT_DATA, "RLIMIT_DATA", limits.data_bytes, limits.data_bytes));
  }
  return {};
}

Result<MemoryMeter> MemoryMeter::Open() {
  UniqueFd statm(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  if (!statm.valid()) {
    return Failed("open", "/proc/self/statm");
  }
  return MemoryMeter(std::move(statm));
}

Result<std::uint64_t> MemoryMeter::DataBytes() const {
  char text[128];
  const ssize_t got = pread(statm_.get(), text, sizeof text, 0);
  if (got < 0) {
    return Failed("read", "/proc/self/statm");
  }
  std::string_view rest(text, static_cast<std::size_t>(got));
  for (int field = 0; field < kDataField; ++field) {
    rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  }
  std::uint64_t pages = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), pages).ec != std::errc()) {
    return Fail(ErrorCode::kLaunch, "/proc/self/statm is not as expected", 0, "rlimits");
  }
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Status MemoryMeter::LimitDataGrowth(std::uint64_t bytes) const {
  const std::uint64_t limit = SaturatingAdd(BH_TRY(DataBytes()), bytes);
  return Lower(RLIMIT_DATA, "RLIMIT_DATA", limit, limit);
}

}  // namespace bulkhead::worker
