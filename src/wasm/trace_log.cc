#include "wasm/trace_log.h"

#include <fmt/format.h>

namespace bulkhead::wasm {

void TraceLog::Note(std::string_view name, std::uint32_t thread, std::int32_t opcode) {
  const auto since_start = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start_);
  const std::lock_guard lock(mutex_);
  if (events_.size() < kEventsMax) {
    events_.push_back({name, since_start, thread, opcode});
  } else {
    ++omitted_;
  }
}

std::string TraceLog::Text(const sketch::HubSnapshot& end) const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Event& event : events_) {
    text += fmt::format("{} us={} thread={} op={}\n", event.name, event.since_start.count(),
                        event.thread, event.opcode);
  }
  text += fmt::format("omitted {}\n", omitted_);
  return text + fmt::format(
                    "counters operations={} resources={} blobs={} timers={} retained={} "
                    "retained-peak={} outputs={}\n",
                    end.live_operations, end.live_resources, end.live_blobs, end.live_timers,
                    end.retained_bytes, end.retained_bytes_peak, end.committed_outputs);
}

}  // namespace bulkhead::wasm
