// One-shot runs: an admitted module in a fresh worker that can always be killed, one Outcome.
//
//   auto runtime = BH_TRY(Runtime::Create({}));
//   auto module = BH_TRY(BH_TRY(ModuleSource::FromFile("a.wasm", kMax)).Admit({}));
//   RunReport report = RunModule(*runtime, module, request);
//   if (report.outcome.completed()) ...
#pragma once

#include <bulkhead/cancellation.h>
#include <bulkhead/module.h>
#include <bulkhead/outcome.h>
#include <bulkhead/output_grant.h>
#include <bulkhead/runtime.h>
#include <bulkhead/sketch_limits.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead {

// How much of what a machine offers holds a worker. docs/containment.md lists the mechanisms.
enum class SandboxLevel : std::uint8_t {
  kNone,     // resource limits and the process wall only
  kDefault,  // all there is; less than Landlock and a system call filter ends as worker-launch
  kStrict,   // all of StrictMechanisms(), or worker-launch
};

// "none", "default", "strict".
std::string_view SandboxLevelName(SandboxLevel level);
// What the level strict insists on.
std::vector<std::string> StrictMechanisms();
// All names that can be required.
std::vector<std::string> KnownMechanisms();

// Which program is the worker, and what holds it. Value type; Validate() is applied by every run
// (violations end as worker-invalid-configuration).
struct WorkerConfig {
  static constexpr std::chrono::nanoseconds kGraceMax = std::chrono::seconds(60);

  std::string executable;  // absolute, not empty; existence is not checked before the launch
  std::chrono::nanoseconds grace =
      std::chrono::seconds(2);                   // (0, 60 s]: between asking to stop and killing
  std::string working_directory = "/";           // absolute
  std::optional<std::string> executable_sha256;  // 64 hex digits: the file must have this digest
  bool check_build_id = true;  // off for worker programs that are not part of this build
  SandboxLevel sandbox = SandboxLevel::kDefault;
  // Of KnownMechanisms(), beside what the level insists on: a run without one of these ends as
  // worker-launch before the worker sees the module. "cgroup-memory" and "cgroup-pids" are limits
  // that workers have anyhow where cgroups of version 2 have these controllers; asking for them
  // adds version 1, where joining one costs each start some milliseconds.
  std::vector<std::string> required_mechanisms;
  std::uint64_t descriptors_max =
      0;  // RLIMIT_NOFILE of the worker at its start, 0: the library's default
  std::uint64_t file_bytes_max = 0;  // RLIMIT_FSIZE of the worker, 0: derived from the output grant

  Status Validate() const;
};

// The worker program of this installation: $BULKHEAD_WORKER_DIR, then beside the running program,
// then <prefix>/libexec/bulkhead. kNotFound names every place tried.
Result<std::string> FindWorker(std::string_view program_name);
inline constexpr std::string_view kWasmWorkerName = "bulkhead-wasm-worker";

struct RunLimits {
  std::chrono::nanoseconds deadline =
      std::chrono::seconds(30);                      // > 0; covers everything from the call on
  std::optional<std::chrono::nanoseconds> cpu_time;  // whole worker; rounded up to seconds
  std::optional<std::uint64_t> fuel;                 // >= 1
  std::uint64_t memory_bytes = 1ULL << 30;           // guest memory and tables
  std::uint64_t compile_memory_bytes = 2ULL << 30;   // the worker while compiling
  std::chrono::nanoseconds compile_time = std::chrono::seconds(60);  // > 0; within the deadline
  std::uint64_t stack_bytes = 2ULL << 20;  // of each thread; 64 KiB .. 64 MiB
  // Threads a guest starts, alive at once; 1 .. 1024. Profile sketch: 1 .. 16, and no more in all.
  std::uint32_t threads_max = 16;
  std::uint64_t scratch_bytes = 0;     // size of the guest's private /tmp, 0: none
  std::uint64_t stdout_bytes_max = 0;  // 0: unlimited
  bool cooperative_stop = true;        // false: no stop checks in compiled code; a stop is a kill

  Status Validate() const;
};

struct DirectoryGrant {
  std::string host_path;   // an existing directory
  std::string guest_path;  // the preopen's name, as the guest sees it: "/data", "."
  bool writable = false;
};

// Where a guest stream goes. Descriptors are borrowed: they stay open until the run has ended.
struct GuestStream {
  enum class Kind : std::uint8_t { kNone, kDescriptor, kCapture };

  Kind kind = Kind::kNone;  // kNone: stdin reads end of file, output is discarded
  int descriptor = -1;
  std::uint64_t capture_bytes_max =
      0;  // kCapture: keep the first bytes in the report, discard the rest

  static GuestStream None() { return {}; }

  static GuestStream Descriptor(int fd) { return {Kind::kDescriptor, fd, 0}; }

  static GuestStream Capture(std::uint64_t bytes_max) { return {Kind::kCapture, -1, bytes_max}; }
};

struct RunRequest {
  WorkerConfig worker;
  RunLimits limits;
  SketchLimits sketch;                   // of modules of that profile
  std::vector<std::string> arguments;    // [0] is the program name the guest sees
  std::vector<std::string> environment;  // "K=V"
  std::vector<DirectoryGrant> directories;
  std::optional<OutputGrant> output;
  GuestStream stdin_from;  // kNone or kDescriptor
  GuestStream stdout_to;
  GuestStream stderr_to;
  bool neutralise_terminal =
      true;            // control sequences are made visible when stdout/stderr is a terminal
  CancelToken cancel;  // stop politely: Cancel message, grace, kill
  CancelToken force;   // stop now: like cancel with no grace left
};

struct LimitUse {
  std::string name;  // "deadline-ms", "memory-bytes", "fuel", "output-bytes", "stdout-bytes", ...
  std::uint64_t used = 0;
  std::uint64_t cap = 0;
  bool reached = false;
};

struct OutputReport {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;
  bool published = false;
};

// Where the code came from that the guest ran as.
enum class CodeSource : std::uint8_t {
  kCompiledInRun,  // its own worker compiled it: there is no cache
  kCompiled,       // a worker that did nothing else compiled it
  kCache,
};

// "compiled-in-run", "compiled", "cache".
std::string_view CodeSourceName(CodeSource source);

struct CodeReport {
  CodeSource source = CodeSource::kCompiledInRun;
  std::string key;      // of the cache entry, empty without a cache
  bool stored = false;  // by this run
  std::string problem;  // what was wrong with the cache or its entry, empty if nothing was
};

struct RunReport {
  Outcome outcome;
  Stage stage = Stage::kAdmit;        // the last stage reached
  StopCause stop = StopCause::kNone;  // latched, also when another outcome outranks it
  std::string
      masked_code;  // the terminal that a cleanup failure or protocol fault outranked, else empty
  std::array<std::chrono::microseconds, kStageCount> durations{};  // time spent in each stage
  std::chrono::microseconds elapsed{0};
  std::chrono::microseconds cpu{0};
  std::uint64_t memory_peak_bytes = 0;  // resident, whole worker, from the kernel
  // The same as its cgroup counts, pages of files included; where there is "cgroup-memory".
  std::optional<CgroupMemory> cgroup_memory;
  WorkerLedger ledger;                   // this run's own counts
  std::vector<std::string> containment;  // mechanisms obtained
  std::vector<LimitUse> limits;
  bool memory_growth_refused = false;
  std::uint64_t guest_memory_bytes_peak = 0;  // linear memories, as the worker says
  std::uint64_t fuel_used = 0;
  bool output_created = false;  // the guest created its output file
  std::optional<OutputReport> output;
  CodeReport code;
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  std::uint64_t stdout_undelivered_bytes = 0;
  std::string stdout_captured;
  std::string stderr_captured;
  std::string worker_stderr_tail;  // what the worker program itself said, at most 64 KiB, printable
  std::string diagnostic;          // one or two sentences; at most 1 KiB + our own
  std::string trace;  // of a worker made for tests; empty: there is none, or it was lost in a kill
  bool warm_worker = false;  // a spare one served the run (KeepWarm)
  int worker_pid = 0;
  std::string worker_exit;  // "exit 0", "signal 9 (SIGKILL)", "" if none was observed
};

// A run in progress on a thread of its own. Move-only owner: destroying it cancels, waits and
// discards the report.
class RunHandle {
 public:
  RunHandle(RunHandle&& other) noexcept;
  RunHandle& operator=(RunHandle&& other) noexcept;
  RunHandle(const RunHandle&) = delete;
  RunHandle& operator=(const RunHandle&) = delete;
  ~RunHandle();

  // Polls readable from the end of the run on. Owned by the handle.
  int poll_fd() const;
  // Cancels this run as the request's token does; other runs that share the token go on. Any
  // thread.
  void Cancel();
  // Blocks until the run has ended; once.
  RunReport Wait();

 private:
  friend Result<RunHandle> StartRun(Runtime&, const AdmittedModule&, RunRequest);
  struct Impl;
  explicit RunHandle(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// kResourceExhausted if no thread is to be had; everything else that can go wrong is in the report.
// The runtime must outlive the handle.
Result<RunHandle> StartRun(Runtime& runtime, const AdmittedModule& module, RunRequest request);

// The same on the calling thread. Never throws, never exceeds deadline + grace + the bounded reap
// waits (docs/outcomes.md) but for the file system's own time while publishing.
RunReport RunModule(Runtime& runtime, const AdmittedModule& module, const RunRequest& request);

// Keeps `count` spare workers started, locked down and greeted for runs like this one: with the
// same worker configuration, compile memory, CPU time and output limit. Each spare serves one run
// and is replaced in the background; a run for which there is none starts its own worker. Spares
// hold no authority: runs with directories or scratch space never use them, and a request with such
// is kInvalidArgument here. What was kept before is ended; 0 keeps none. kResourceExhausted if no
// thread is to be had. Whether starting them works is in Snapshot::warm.
Status KeepWarm(Runtime& runtime, const RunRequest& like, std::uint32_t count);

// Translates WebAssembly text in a worker, under the request's worker, deadline, memory and cancel.
// kModuleRefused with reason "invalid-text"; a stop or a worker failure is kLaunch/kProtocol/...
// with the outcome's code as reason.
Result<ModuleSource> ConvertText(Runtime& runtime, const ModuleSource& text,
                                 const RunRequest& request);

}  // namespace bulkhead
