// What the parent can say. docs/protocol.md shows the same as tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/archive.h"
#include "wire/bounds.h"
#include "wire/message_kind.h"

namespace bulkhead::wire {

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
  bool own_mounts = false;                 // the worker lives in namespaces made for it
  bool own_user = false;                   // one of them is a user namespace
  bool may_change_user = false;            // started by root, it may become somebody else

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
    a.Field(m.own_mounts);
    a.Field(m.own_user);
    a.Field(m.may_change_user);
  }
};

enum class Mode : std::uint8_t {
  kRun = 0,          // compile and run the module
  kConvertText = 1,  // translate WebAssembly text into the output descriptor; runs nothing
  kCompile = 2,      // write the module's code into the output descriptor; runs nothing
};

enum class GuestProfile : std::uint8_t { kWasi = 0, kWasiThreads = 1, kSketch = 2 };

// Of the threads a guest starts; the one that begins it is not counted.
struct ThreadLimits {
  std::uint32_t live_max = 0;
  std::uint32_t total_max = 0;      // over the whole run, 0: unlimited
  std::uint64_t root_fuel = 0;      // what of `fuel` the first thread gets
  std::uint64_t child_fuel = 0;     // and each further one, while there is as much left
  bool child_fuel_returns = false;  // what a thread leaves over is there for later ones

  friend bool operator==(const ThreadLimits&, const ThreadLimits&) = default;

  static void Fields(auto& a, auto& m) {
    a.Field(m.live_max);
    a.Field(m.total_max);
    a.Field(m.root_fuel);
    a.Field(m.child_fuel);
    a.Field(m.child_fuel_returns);
  }
};

// Bounds of the byte queues of the sketch profile.
struct BlobLimits {
  std::uint64_t chunk_bytes = 0;
  std::uint64_t blob_bytes = 0;
  std::uint64_t sketch_bytes = 0;
  std::uint64_t transfer_bytes = 0;
  std::uint32_t live_max = 0;
  std::uint32_t pending_reads_max = 0;
  std::uint32_t pending_writes_max = 0;
  std::uint64_t idle_timeout_us = 0;

  friend bool operator==(const BlobLimits&, const BlobLimits&) = default;

  static void Fields(auto& a, auto& m) {
    a.Field(m.chunk_bytes);
    a.Field(m.blob_bytes);
    a.Field(m.sketch_bytes);
    a.Field(m.transfer_bytes);
    a.Field(m.live_max);
    a.Field(m.pending_reads_max);
    a.Field(m.pending_writes_max);
    a.Field(m.idle_timeout_us);
  }
};

// The work. Descriptors, in this order: module; the code if there is any; then those of stdin,
// stdout, stderr, output that are present.
struct Execute {
  Mode mode = Mode::kRun;
  GuestProfile profile = GuestProfile::kWasi;
  std::uint64_t module_bytes = 0;
  std::uint64_t code_bytes = 0;    // mode run: what mode compile wrote for this module; 0: compile
  std::uint64_t code_offset = 0;   // where in its descriptor the code begins
  std::uint64_t remaining_ms = 0;  // until the deadline, at least 1
  std::uint64_t fuel = 0;          // 0: not metered
  std::uint64_t memory_bytes = 0;  // of all linear memories and tables
  std::uint64_t memory_overhead_bytes =
      0;  // RLIMIT_DATA while the guest runs: use after compiling + both
  std::uint64_t stack_bytes = 0;
  ThreadLimits threads;
  BlobLimits blobs;
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
    a.Field(m.mode, LastEnumerator<Mode>{Mode::kCompile});
    a.Field(m.profile, LastEnumerator<GuestProfile>{GuestProfile::kSketch});
    a.Field(m.module_bytes);
    a.Field(m.code_bytes);
    a.Field(m.code_offset);
    a.Field(m.remaining_ms);
    a.Field(m.fuel);
    a.Field(m.memory_bytes);
    a.Field(m.memory_overhead_bytes);
    a.Field(m.stack_bytes);
    a.Field(m.threads);
    a.Field(m.blobs);
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

}  // namespace bulkhead::wire
