// What this machine offers for containment, found by trying it, never by guessing from a version.
// For `bulkhead doctor`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::cli {

enum class CheckState : std::uint8_t {
  kOk,
  kDegraded,  // works, with the cost named
  kMissing,   // runs cannot be contained at the default level without it
};

// "ok", "degraded", "missing".
std::string_view CheckStateName(CheckState state);

struct MachineCheck {
  std::string name;
  CheckState state = CheckState::kOk;
  std::string finding;
  std::string cost;  // what is lost, empty when ok
  std::string fix;   // a command or setting, empty when ok
};

struct MachineReport {
  std::vector<MachineCheck> checks;
  bool contained = false;  // a module ran in the default containment
  std::vector<std::string> containment;
};

// Everything that can be asked without running a worker. Forks a child for one of the probes: call
// it while the program has one thread.
std::vector<MachineCheck> CheckMachine();

}  // namespace bulkhead::cli
