// Everything the two sides of a worker's socket can say. docs/protocol.md shows the same as tables.
//
// A run, in order:  parent: Hello ............ Execute ........................ [Cancel]
//                   worker:        HelloAck ......... Ready, Started, [Trace], Terminal, exit 0
// The parent reads at most kWorkerMessagesMax messages; closing the socket means Cancel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "wire/archive.h"
#include "wire/bounds.h"

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

// First message; carries what the worker must know to lock itself down. Descriptors: one per entry
// of `directories`, in order.
struct Hello {
  struct Directory {
    std::string guest_path;
    bool writable = false;

    static void Fields(auto& a, auto& m) {
      a.Field(m.guest_path, Max{4096});
      a.Field(m.writable);
    }
  };

  Nonce nonce{};
  std::uint32_t frame_bytes_max = kFromWorkerBytesMax;  // what the parent accepts
  std::string build_id;
  std::vector<Directory> directories;
  std::uint64_t scratch_bytes = 0;         // 0: no /tmp
  std::uint64_t compile_memory_bytes = 0;  // RLIMIT_DATA until the guest starts
  std::uint64_t cpu_seconds = 0;           // RLIMIT_CPU, 0: unlimited
  std::uint64_t file_bytes_max = 0;        // RLIMIT_FSIZE
  bool sandbox = true;                     // false: --sandbox none, only the resource limits apply

  static constexpr Kind kKind = Kind::kHello;

  static void Fields(auto& a, auto& m) {
    a.Field(m.nonce);
    a.Field(m.frame_bytes_max);
    a.Field(m.build_id, Max{64});
    a.Field(m.directories, Max{kDirectoryGrantsMax});
    a.Field(m.scratch_bytes);
    a.Field(m.compile_memory_bytes);
    a.Field(m.cpu_seconds);
    a.Field(m.file_bytes_max);
    a.Field(m.sandbox);
  }
};

enum class Mode : std::uint8_t {
  kRun = 0,          // compile and run the module
  kConvertText = 1,  // translate WebAssembly text into the output descriptor; runs nothing
};

// The work. Descriptors, in this order: module; then those of stdin, stdout, stderr, output that
// are present.
struct Execute {
  Mode mode = Mode::kRun;
  std::uint64_t module_bytes = 0;
  std::uint64_t remaining_ms = 0;  // until the deadline, at least 1
  std::uint64_t fuel = 0;          // 0: not metered
  std::uint64_t memory_bytes = 0;  // of all linear memories and tables
  std::uint64_t memory_overhead_bytes =
      0;  // RLIMIT_DATA while the guest runs: use after compiling + both
  std::uint64_t stack_bytes = 0;
  bool cooperative = true;  // compile with epoch checks
  bool has_stdin = false;
  bool has_stdout = false;
  bool has_stderr = false;
  bool has_output = false;
  std::string output_name;  // the one file name /output may hold
  std::uint64_t output_bytes_max = 0;
  std::vector<std::string> arguments;    // [0] is the program name the guest sees
  std::vector<std::string> environment;  // "K=V"

  static constexpr Kind kKind = Kind::kExecute;

  static void Fields(auto& a, auto& m) {
    a.Field(m.mode, LastEnumerator<Mode>{Mode::kConvertText});
    a.Field(m.module_bytes);
    a.Field(m.remaining_ms);
    a.Field(m.fuel);
    a.Field(m.memory_bytes);
    a.Field(m.memory_overhead_bytes);
    a.Field(m.stack_bytes);
    a.Field(m.cooperative);
    a.Field(m.has_stdin);
    a.Field(m.has_stdout);
    a.Field(m.has_stderr);
    a.Field(m.has_output);
    a.Field(m.output_name, Max{255});
    a.Field(m.output_bytes_max);
    a.Field(m.arguments, Max{kArgumentsMax}, Max{kArgumentBytesMax});
    a.Field(m.environment, Max{kArgumentsMax}, Max{kArgumentBytesMax});
  }
};

// Stop politely. Sent at most once; carries nothing.
struct Cancel {
  static constexpr Kind kKind = Kind::kCancel;

  static void Fields(auto& /*a*/, auto& /*m*/) {}
};

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
    a.Field(m.kind, LastEnumerator<Kind>{Kind::kLimitReached});
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

// Direction is a type: a message that travels the wrong way cannot even be decoded.
using ToWorker = std::variant<Hello, Execute, Cancel>;
using FromWorker = std::variant<HelloAck, Ready, Started, Trace, Terminal>;

}  // namespace bulkhead::wire
