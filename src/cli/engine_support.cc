#include "cli/engine_support.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <chrono>

namespace bulkhead::cli {

EngineInfo ThisEngine() {
  return {"wasmtime", BH_ENGINE_VERSION, BH_ENGINE_SUPPORTED_UNTIL, BH_ENGINE_LINKED_IN != 0};
}

std::string Today() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%F}", fmt::gmtime(now));
}

MachineCheck CheckEngine(const EngineInfo& engine, std::string_view today) {
  MachineCheck check{"engine", CheckState::kOk, {}, {}, {}};
  check.finding = fmt::format("{} {}, {}", engine.name, engine.version,
                              engine.linked_in ? "linked into the worker" : "a shared library");
  if (engine.supported_until.empty()) {
    check.state = CheckState::kDegraded;
    check.finding += ", of unknown support";
    check.cost = "nobody says whether holes in it are closed";
    check.fix = "build with one of the pinned engines: make ENGINE=wheel or ENGINE=lts";
    return check;
  }
  const bool ended = today > engine.supported_until;  // such days compare as text
  check.finding += fmt::format(", {} {}", ended ? "out of support since" : "supported until",
                               engine.supported_until);
  if (ended) {
    check.state = CheckState::kDegraded;
    check.cost = "holes found since then stay open, and only the sandbox is left";
    check.fix = "install a newer release of Bulkhead";
  }
  return check;
}

}  // namespace bulkhead::cli
