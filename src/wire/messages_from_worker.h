// What a worker can say. docs/protocol.md shows the same as tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/archive.h"
#include "wire/bounds.h"
#include "wire/message_kind.h"

namespace bulkhead::wire {

// After lock-down. `failed_mechanism` empty: the worker is locked down as `mechanisms` says.
struct HelloAck {
  Nonce nonce{};
  std::string build_id;
  std::vector<std::string> mechanisms;  // "no-new-privs", "landlock-abi-7", "seccomp", ...
  std::string failed_mechanism;
  std::int32_t failed_errno = 0;

  static constexpr Kind kKind = Kind::kHelloAck;

  static void Fields(auto& a, auto& m) {
    a.Field(m.nonce);
    a.Field(m.build_id, Max{64});
    a.Field(m.mechanisms, Max{32}, Max{64});
    a.Field(m.failed_mechanism, Max{64});
    a.Field(m.failed_errno);
  }
};

// The sealed module is mapped and its size and seals are right; compiling has not begun.
struct Ready {
  std::uint64_t module_bytes = 0;

  static constexpr Kind kKind = Kind::kReady;

  static void Fields(auto& a, auto& m) { a.Field(m.module_bytes); }
};

// Compiled; the guest is about to run.
struct Started {
  std::uint64_t compile_us = 0;

  static constexpr Kind kKind = Kind::kStarted;

  static void Fields(auto& a, auto& m) { a.Field(m.compile_us); }
};

// Test builds only: printable ASCII and LF.
struct Trace {
  std::string text;

  static constexpr Kind kKind = Kind::kTrace;

  static void Fields(auto& a, auto& m) { a.Field(m.text, Max{kTraceBytesMax}); }
};

// Where and why a guest trapped.
struct TrapReport {
  std::string code;     // "unreachable", "memory-out-of-bounds", ...
  std::string message;  // from the engine; guest-chosen names in it are untrusted text
  std::uint32_t thread = 0;
  std::vector<std::string> backtrace;

  static void Fields(auto& a, auto& m) {
    a.Field(m.code, Max{64});
    a.Field(m.message, Max{kDiagnosticBytesMax});
    a.Field(m.thread);
    a.Field(m.backtrace, Max{kBacktraceFramesMax}, Max{1024});
  }
};

struct Terminal {
  using Trap = TrapReport;
  enum class Kind : std::uint8_t {
    kNone = 0,  // never legal on the wire
    kCompleted = 1,
    kCancelled = 2,
    kDeadlineExceeded = 3,
    kOutOfFuel = 4,
    kTrapped = 5,
    kNonzeroExit = 6,
    kChildFailure = 7,
    kProtocolFailure = 8,
    kWorkerFailure = 9,
    kForcedContainment = 10,
    kModuleRefused = 11,  // does not validate, link or convert; `reason` says which
    kLimitReached = 12,   // `limit` says which
    kCodeRefused = 13,    // the engine does not take the code that came with Execute; nothing ran
  };
  enum class CompletedAs : std::uint8_t {
    kNone = 0,
    kStarted = 1,  // the entry point returned
    kExited = 2,   // proc_exit(0)
    kStartedWithThreadRejections = 3,
    kExitedWithThreadRejections = 4,
  };
  enum class Limit : std::uint8_t { kNone = 0, kMemory = 1, kCompile = 2, kOutput = 3 };

  struct Rejections {
    std::uint32_t capacity = 0;
    std::uint32_t closing = 0;
    std::uint32_t fuel = 0;
    std::uint32_t epoch = 0;

    bool any() const { return (capacity | closing | fuel | epoch) != 0; }

    static void Fields(auto& a, auto& m) {
      a.Field(m.capacity);
      a.Field(m.closing);
      a.Field(m.fuel);
      a.Field(m.epoch);
    }
  };

  // What the worker still holds after closing the session; all must be zero.
  struct Counters {
    std::uint64_t active_roots = 0;
    std::uint64_t live_stores = 0;
    std::uint64_t live_instances = 0;
    std::uint64_t epoch_registrations = 0;
    std::uint64_t live_threads = 0;

    bool zero() const {
      return (active_roots | live_stores | live_instances | epoch_registrations | live_threads) ==
             0;
    }

    static void Fields(auto& a, auto& m) {
      a.Field(m.active_roots);
      a.Field(m.live_stores);
      a.Field(m.live_instances);
      a.Field(m.epoch_registrations);
      a.Field(m.live_threads);
    }
  };

  // Measured in the worker; the parent shows them and decides nothing on them.
  struct Facts {
    std::uint64_t memory_bytes_peak = 0;  // linear memories of the guest
    bool memory_growth_refused = false;
    std::uint64_t fuel_used = 0;
    std::uint64_t instantiate_us = 0;
    std::uint64_t execute_us = 0;
    bool output_created = false;

    static void Fields(auto& a, auto& m) {
      a.Field(m.memory_bytes_peak);
      a.Field(m.memory_growth_refused);
      a.Field(m.fuel_used);
      a.Field(m.instantiate_us);
      a.Field(m.execute_us);
      a.Field(m.output_created);
    }
  };

  Kind kind = Kind::kNone;
  CompletedAs completed_as = CompletedAs::kNone;
  Rejections rejections;
  std::optional<std::int32_t> status;
  std::string diagnostic;
  std::string reason;
  Limit limit = Limit::kNone;
  Counters counters;
  std::optional<Trap> trap;
  Facts facts;

  static constexpr wire::Kind kKind = wire::Kind::kTerminal;

  static void Fields(auto& a, auto& m) {
    a.Field(m.kind, LastEnumerator<Kind>{Kind::kCodeRefused});
    a.Field(m.completed_as, LastEnumerator<CompletedAs>{CompletedAs::kExitedWithThreadRejections});
    a.Field(m.rejections);
    a.Field(m.status);
    a.Field(m.diagnostic, Max{kDiagnosticBytesMax});
    a.Field(m.reason, Max{64});
    a.Field(m.limit, LastEnumerator<Limit>{Limit::kOutput});
    a.Field(m.counters);
    a.Field(m.trap);
    a.Field(m.facts);
  }
};

}  // namespace bulkhead::wire
