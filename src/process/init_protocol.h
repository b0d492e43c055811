// What the init of a worker's pid namespace (apps/bulkhead-init) and the launcher tell each other.
// Both are of one build; the messages are plain structs on a SOCK_SEQPACKET socket.
#pragma once

#include <cstdint>

namespace bulkhead::process {

// Descriptors that init finds beside those meant for the worker, which lie below.
inline constexpr int kInitReportDescriptor = 16;
inline constexpr int kInitProgramDescriptor = 17;  // only with a program that is pinned by digest

struct InitReport {
  enum class Kind : std::uint32_t {
    kStarted = 1,     // the worker executes; a pidfd of it and its pid (SCM_CREDENTIALS) come along
    kExecFailed = 2,  // `error` says why; there is no worker
    kExited = 3,      // the last message
  };

  Kind kind = Kind::kStarted;
  std::int32_t error = 0;
  std::int32_t wait_status = 0;  // as wait4(2) has it
  std::uint64_t cpu_us = 0;      // of the worker and what it waited for
  std::uint64_t rss_bytes_peak = 0;
};

}  // namespace bulkhead::process
