// What holds a process, judged from outside: one finding for each mechanism a worker is meant to
// have. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/process_view.h"

namespace bulkhead::cli {

enum class AuditState : std::uint8_t {
  kOk,
  kWeaker,   // not what a worker of this build has
  kUnknown,  // may not be read, or is nowhere to be read
};

// "ok", "weaker", "unknown".
std::string_view AuditStateName(AuditState state);

struct AuditFinding {
  std::string mechanism;  // as in the containment of reports where it has a name there
  AuditState state = AuditState::kOk;
  std::string finding;
  std::string meaning;  // what is lost, or why it is not known; empty when ok
  // The level default promises it on every machine. What it promises only where a machine gives it
  // is shown, and is no fault of the worker.
  bool promised = true;
};

struct Audit {
  pid_t pid = 0;
  std::string program;  // the name the process has, as the kernel keeps it
  std::vector<AuditFinding> findings;

  // Nothing that is promised is weaker.
  bool holds() const;
};

// `own` is the process that asks: what the other shares with it is not its own.
Audit JudgeProcess(const ProcessView& process, const ProcessView& own);

}  // namespace bulkhead::cli
