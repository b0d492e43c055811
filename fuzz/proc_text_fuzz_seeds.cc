#include "seeds.h"

namespace bulkhead::fuzz {

std::vector<std::string> Seeds() {
  using namespace std::string_literals;
  return {
      "0::/user.slice/a\n"s + '\0' +
          "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"s,
      "7:freezer:/a b\n4:pids,memory:/\n0::/\n"s + '\0' +
          "35 30 0:31 /a\\040b /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
          "36 30 0:32 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids,memory\n"s,
  };
}

}  // namespace bulkhead::fuzz
