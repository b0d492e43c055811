// What the levels of the sandbox insist on.
#include <bulkhead/run.h>

#include "oneshot/run.h"

namespace bulkhead {

std::string_view SandboxLevelName(SandboxLevel level) {
  switch (level) {
    case SandboxLevel::kNone:
      return "none";
    case SandboxLevel::kDefault:
      return "default";
    case SandboxLevel::kStrict:
      return "strict";
  }
  return "default";
}

std::vector<std::string> StrictMechanisms() {
  return {"pid-namespace", "mount-namespace", "network-namespace", "ipc-namespace", "uts-namespace",
          "rlimits",       "no-new-privs",    "empty-root",        "landlock",      "not-dumpable",
          "seccomp"};
}

// Names as in RunReport::containment, but for versions ("landlock").
std::vector<std::string> KnownMechanisms() {
  std::vector<std::string> known = StrictMechanisms();
  for (const char* beyond :
       {"user-namespace", "unprivileged-user", "no-capabilities", "cgroup-memory", "cgroup-pids"}) {
    known.emplace_back(beyond);
  }
  return known;
}

namespace oneshot {

// A worker that cannot do what the level default insists on says so itself, in its HelloAck.
std::vector<std::string> RequiredMechanisms(const WorkerConfig& config) {
  std::vector<std::string> required;
  if (config.sandbox == SandboxLevel::kStrict) {
    required = StrictMechanisms();
  }
  required.insert(required.end(), config.required_mechanisms.begin(),
                  config.required_mechanisms.end());
  return required;
}

}  // namespace oneshot
}  // namespace bulkhead
