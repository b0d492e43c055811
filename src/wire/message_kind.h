// What frames and both directions of messages have in common.
#pragma once

#include <array>
#include <cstdint>

namespace bulkhead::wire {

enum class Kind : std::uint8_t {
  kHello = 1,
  kExecute = 2,
  kCancel = 3,
  kHelloAck = 16,
  kReady = 17,
  kStarted = 18,
  kTrace = 19,
  kTerminal = 20,
};
using Nonce = std::array<std::uint8_t, 16>;

}  // namespace bulkhead::wire
