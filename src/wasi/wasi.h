// WASI preview 1, complete and independent of any engine: an engine binding looks up Functions(),
// gives each call the guest's memory, and obeys the Control it gets back. All threads of one guest
// share one Wasi; every member is safe to call from any of them. A guest's mistakes are error
// numbers for the guest; nothing here fails or aborts because of them. Calls that wait (streams,
// poll_oneoff) also wait for the stop event.
//
// The process must ignore SIGPIPE: the reader of stdout may leave at any time.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "wasi/guest_memory.h"

namespace bulkhead::wasi {

class Descriptor;
class DescriptorTable;
class OutputFile;
class StdioStream;

// A directory the guest may use, and everything beneath it. The descriptor may be O_PATH.
struct Preopen {
  UniqueFd dir;
  std::string guest_path;
  bool writable = false;
};

// The one file the guest may produce. It appears in the otherwise empty directory `guest_dir` under
// `name` once the guest creates it, and is never larger than `bytes_max`.
struct OutputGrant {
  UniqueFd file;  // a regular file opened O_RDWR, empty
  std::string name;
  std::uint64_t bytes_max = 0;
  std::string guest_dir = "/output";
};

struct WasiConfig {
  std::vector<std::string> args;  // without NUL bytes
  std::vector<std::string> env;   // "NAME=value"

  UniqueFd stdin_fd;  // may be shared with others, so its flags are left alone; invalid: reads end
                      // of file
  // Private to this process: they are made non-blocking. Invalid: accepts and discards (bytes still
  // count).
  UniqueFd stdout_fd;
  UniqueFd stderr_fd;
  std::uint64_t stdout_bytes_max = 0;  // 0: unlimited; the write that would pass it ends the guest

  std::vector<Preopen> preopens;  // descriptors 3, 4, ... in this order, then the output directory
  std::optional<OutputGrant> output;

  BorrowedFd stop_event;  // readable once the guest has to stop; outlives the Wasi; invalid: never
};

// What happened so far, for the run's report.
struct WasiFacts {
  std::optional<std::uint32_t> exit_code;  // of the first proc_exit
  std::uint64_t stdout_bytes = 0;          // accepted from the guest
  std::uint64_t stderr_bytes = 0;
  bool stdout_reader_gone = false;
  bool stderr_reader_gone = false;
  bool stdout_limit_hit = false;
  bool output_created = false;  // and not unlinked since
  std::uint64_t output_bytes = 0;
  bool output_limit_hit = false;
};

// What the binding does after a call. Everything but kContinue ends the guest: unwind without
// returning to it.
enum class Control : std::uint8_t {
  kContinue,     // the result, if the function has one, is in slot 0
  kExit,         // proc_exit; the code is in the facts
  kStopped,      // the stop event fired while the call was waiting
  kStdoutLimit,  // stdout_bytes_max is used up
};

union Value {
  std::int32_t i32;
  std::int64_t i64;
};

class Wasi {
 public:
  // kInvalidArgument for a configuration outside the bounds above; kIo if a descriptor is not
  // usable.
  static Result<std::unique_ptr<Wasi>> Create(WasiConfig config);
  ~Wasi();
  Wasi(const Wasi&) = delete;
  Wasi& operator=(const Wasi&) = delete;

  WasiFacts Facts() const;

  // For the functions of the table.
  const std::vector<std::string>& args() const { return args_; }

  const std::vector<std::string>& env() const { return env_; }

  DescriptorTable& descriptors() { return *descriptors_; }

  BorrowedFd stop_event() const { return stop_event_; }

  void SetExitCode(std::uint32_t code);

 private:
  explicit Wasi(WasiConfig& config);
  Status AddStdio(WasiConfig& config);
  Status AddDirectories(WasiConfig& config);
  Status AddDescriptor(std::shared_ptr<Descriptor> descriptor, std::uint64_t base,
                       std::uint64_t inheriting);

  std::vector<std::string> args_;
  std::vector<std::string> env_;
  BorrowedFd stop_event_;
  std::unique_ptr<DescriptorTable> descriptors_;
  std::shared_ptr<StdioStream> stdout_;
  std::shared_ptr<StdioStream> stderr_;
  std::shared_ptr<OutputFile> output_;  // null without a grant
  mutable std::mutex mutex_;
  std::optional<std::uint32_t> exit_code_;  // guarded by mutex_
};

struct Function {
  std::string_view name;
  // Parameters, then ':' and the result if there is one; 'i' is i32, 'I' is i64. "iiii:i", "i:".
  std::string_view signature;
  // `slots` holds the arguments and has at least one element; the result replaces slots[0]. Never
  // throws.
  Control (*call)(Wasi& wasi, GuestMemory memory, std::span<Value> slots);
};

// All 46 functions of the import module, sorted by name.
inline constexpr std::string_view kImportModule = "wasi_snapshot_preview1";
std::span<const Function> Functions();

}  // namespace bulkhead::wasi
