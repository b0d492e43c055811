// The engine this build runs guests with, and until when its makers repair it.
#pragma once

#include <string>
#include <string_view>

#include "cli/machine_checks.h"

namespace bulkhead::cli {

struct EngineInfo {
  std::string name;
  std::string version;
  // Last day of support, "2028-08-20"; empty: an engine of the user's own, of which nothing is
  // known (scripts/pins/support.txt).
  std::string supported_until;
  bool linked_in = false;  // into the worker program; else a library beside it
};

EngineInfo ThisEngine();

// Today in UTC, in the same form. The wall clock: a calendar is what is asked for.
std::string Today();

// Degraded when the support has ended or is unknown.
MachineCheck CheckEngine(const EngineInfo& engine, std::string_view today);

}  // namespace bulkhead::cli
