// What makes a worker's HelloAck acceptable. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "process/worker_process.h"
#include "wire/messages.h"

namespace bulkhead::supervise {

struct AckExpectations {
  std::optional<std::string> build;     // nullopt: a program that is not of this build
  std::vector<std::string> mechanisms;  // that the worker or its process must have
};

struct AckJudgement {
  enum class State : std::uint8_t {
    kFine,
    kViolation,      // not an answer to this Hello, or of another build
    kNotLockedDown,  // a mechanism failed, or one that is required is missing
  };

  State state = State::kFine;
  std::string problem;  // one sentence, empty if it is fine
};

AckJudgement JudgeHelloAck(const wire::Hello& sent, const wire::HelloAck& ack,
                           const AckExpectations& expected, const process::OuterWalls& walls);

}  // namespace bulkhead::supervise
