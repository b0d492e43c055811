// What /proc shows of another process, read once and not judged. What may not be read keeps the
// kernel's reason. For `bulkhead audit`.
#pragma once

#include <bulkhead/result.h>

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::cli {

struct ProcessView {
  using Fields = std::map<std::string, std::string, std::less<>>;

  struct Limit {
    std::string soft;  // a number or "unlimited"
    std::string hard;
  };

  struct Root {
    bool empty = false;
    bool read_only = false;
  };

  struct Parent {
    std::string name;
    bool first_of_namespace = false;  // pid 1 in its own
  };

  static constexpr std::string_view kNamespaces[] = {"pid", "mnt", "net", "ipc", "uts", "user"};

  pid_t pid = 0;
  Fields status;                        // /proc/PID/status, values without blanks around
  std::map<std::string, Limit> limits;  // by the kernel's names: "Max core file size"
  Parent parent;
  Result<std::string> cgroup = std::string();  // the text of /proc/PID/cgroup
  // Limits of cgroups of Bulkhead that it is in, as the kernel writes them; "" if there are none.
  Result<std::string> memory_limit = std::string();
  Result<std::string> tasks_limit = std::string();
  Result<std::string> user_map = std::string();     // of its user namespace, as seen from here
  Result<std::string> environment = std::string();  // variables, each ended by a NUL
  Result<Root> root = Root();
  Result<std::map<int, std::string>> descriptors = std::map<int, std::string>();
  std::map<std::string, Result<std::string>, std::less<>>
      namespaces;         // "pid" -> "pid:[4026531836]"
  uid_t files_owner = 0;  // of its files in /proc: root's if it cannot be dumped

  // "" if the kernel has no such field.
  std::string_view Status(std::string_view name) const;
};

// Of the process `pid`, which may be this one. kNotFound if there is none or it ended meanwhile.
Result<ProcessView> ViewProcess(pid_t pid);

}  // namespace bulkhead::cli
