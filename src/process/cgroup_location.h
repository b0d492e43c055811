// Where this process could make cgroups of its own: below its own cgroup in each mounted hierarchy.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::process {

enum class CgroupKind : std::uint8_t {
  kV2,  // the unified hierarchy, alone or beside version 1
  kV1Freezer,
  kV1Pids,
  kV1Memory,
};

struct CgroupLocation {
  CgroupKind kind = CgroupKind::kV2;
  std::string directory;  // absolute path of the process's own cgroup

  friend bool operator==(const CgroupLocation&, const CgroupLocation&) = default;
};

// From the texts of /proc/self/cgroup and /proc/self/mountinfo; best first. A hierarchy whose mount
// does not show the process's own cgroup is left out.
std::vector<CgroupLocation> FindCgroupLocations(std::string_view self_cgroup,
                                                std::string_view mountinfo);

}  // namespace bulkhead::process
