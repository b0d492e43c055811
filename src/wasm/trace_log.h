// What a sketch did, for acceptance tests: calls in their order, a bounded number of them, as lines
// of printable text. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sketch/hub.h"

namespace bulkhead::wasm {

class TraceLog {
 public:
  // More are counted, not kept: a trace has to fit into one message.
  static constexpr std::size_t kEventsMax = 512;

  // `name` is a constant; `opcode` is the kind of an operation, 0 for everything else.
  void Note(std::string_view name, std::uint32_t thread, std::int32_t opcode = 0);

  // "operation_submit us=12 thread=0 op=5" per event, then how many were left out, then what the
  // hub still holds.
  std::string Text(const sketch::HubSnapshot& end) const;

 private:
  struct Event {
    std::string_view name;
    std::chrono::microseconds since_start;
    std::uint32_t thread;
    std::int32_t opcode;
  };

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;  // guards everything below
  std::vector<Event> events_;
  std::uint64_t omitted_ = 0;
};

}  // namespace bulkhead::wasm
