// What /proc says of cgroups and mounts is written by the kernel, with names in it that others
// chose: whatever it is, locations are absolute paths, or there are none. A zero byte parts the two
// texts.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "process/cgroup_location.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\0');
  const std::string_view mounts =
      end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  for (const bulkhead::process::CgroupLocation& location :
       bulkhead::process::FindCgroupLocations(text.substr(0, end), mounts)) {
    BH_CHECK(location.directory.starts_with('/'));
  }
  return 0;
}
