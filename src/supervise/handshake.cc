#include "supervise/handshake.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "base/errno_error.h"
#include "wire/handshake.h"

namespace bulkhead::supervise {
namespace {

using State = AckJudgement::State;

// "landlock" stands for every version of it.
bool Obtained(std::string_view required, const std::vector<std::string>& mechanisms) {
  const std::string versions = fmt::format("{}-abi-", required);
  return std::any_of(mechanisms.begin(), mechanisms.end(), [&](const std::string& m) {
    return m == required || m.starts_with(versions);
  });
}

std::string Lacks(std::string_view mechanism, const process::OuterWalls& walls) {
  std::string problem = fmt::format("the worker lacks {}, which this run requires", mechanism);
  if (!walls.own_mounts && !walls.no_namespaces_because.empty()) {
    problem += fmt::format(": {}", walls.no_namespaces_because);
  } else if (mechanism.starts_with("cgroup-") && !walls.no_cgroup_because.empty()) {
    problem += fmt::format(": {}", walls.no_cgroup_because);
  }
  return problem + "; 'bulkhead doctor' says what this machine offers and how to add to it";
}

}  // namespace

AckJudgement JudgeHelloAck(const wire::Hello& sent, const wire::HelloAck& ack,
                           const AckExpectations& expected, const process::OuterWalls& walls) {
  if (auto checked = wire::CheckHelloAck(sent, ack, expected.build); !checked) {
    return {State::kViolation, std::move(checked).error().message};
  }
  if (!ack.failed_mechanism.empty()) {
    return {State::kNotLockedDown, fmt::format("the worker could not lock itself down: {}: {}",
                                               ack.failed_mechanism, ErrnoText(ack.failed_errno))};
  }
  for (const std::string& required : expected.mechanisms) {
    if (!Obtained(required, walls.mechanisms) && !Obtained(required, ack.mechanisms)) {
      return {State::kNotLockedDown, Lacks(required, walls)};
    }
  }
  return {};
}

}  // namespace bulkhead::supervise
