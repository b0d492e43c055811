// Admission: a bounded structural look at a module before any work enters. Nothing is compiled, no
// process exists.
#pragma once

#include <bulkhead/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

namespace admission {
class SealedImage;
}

enum class Profile : std::uint8_t { kAuto, kWasi, kWasiThreads, kSketch };

// "auto", "wasi", "wasi-threads", "sketch".
std::string_view ProfileName(Profile profile);
std::optional<Profile> ParseProfile(std::string_view name);

// What a module may look like. Value type.
struct ModulePolicy {
  // Transport ceiling (one-shot specification, section 8); modules above are refused before they
  // are read.
  static constexpr std::uint64_t kModuleBytesCeiling = 512ULL << 20;

  std::uint64_t module_bytes_max = kModuleBytesCeiling;
  Profile profile =
      Profile::kAuto;  // kAuto: whatever the module is; else any other profile is refused
  std::uint64_t memory_bytes_max = 1ULL
                                   << 30;  // a module whose declared minimum is above is refused
};

// What the scan found; every list is bounded (see wasm_scan.h), names are cut at 96 bytes and valid
// UTF-8.
struct ModuleInfo {
  struct Memory {
    bool imported = false;
    bool shared = false;
    bool memory64 = false;
    std::uint64_t pages_min = 0;
    std::optional<std::uint64_t> pages_max;
  };

  struct Import {
    std::string module;
    std::string name;
    std::string kind;  // "function", "table", "memory", "global", "tag"
    std::string type;  // e.g. "(i32, i32) -> i32"
  };

  struct Export {
    std::string name;
    std::string kind;
    std::string type;
  };

  std::uint64_t bytes = 0;
  Profile profile = Profile::kAuto;  // detected; kAuto when the bytes are not a module at all
  std::vector<Memory> memories;
  std::vector<Import> imports;
  std::vector<Export> exports;
  std::vector<std::string> custom_sections;
  std::uint64_t import_count = 0;  // all, also those the bounded list leaves out
  std::uint64_t export_count = 0;
  std::uint64_t functions = 0;  // defined ones
  bool has_start_section = false;
};

// A refusal is an answer about the module, not a failure of ours. Codes are stable:
// docs/outcomes.md lists them.
struct Refusal {
  std::string code;    // "invalid-binary", "forbidden-import", ...
  std::string detail;  // one sentence with the names and numbers
};

// The verdict of one look: all refusals found (first is the one Admit reports), none = admissible.
struct Inspection {
  ModuleInfo info;
  std::vector<Refusal> refusals;
};

// A module that passed: its bytes sit in one sealed, immutable memory file shared by all copies of
// this handle. Copyable, any thread, may be run any number of times at once.
class AdmittedModule {
 public:
  // The sealed memfd. Owned by this object; valid as long as any copy lives.
  int descriptor() const;
  std::uint64_t size_bytes() const;
  const ModulePolicy& policy() const;
  const ModuleInfo& info() const;
  // Address of the one mapping of the bytes; every copy returns the same.
  std::span<const std::uint8_t> bytes() const;
  // SHA-256 of the bytes, 64 lower-case hex digits; computed at the first call, any thread.
  std::string sha256() const;

 private:
  friend class ModuleSource;
  struct State;

  explicit AdmittedModule(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

// Module bytes on their way to admission: read once into a sealed memory file, never copied again.
// Move-only.
class ModuleSource {
 public:
  // Reads a regular file (or pipe) completely. Errors: kNotFound, kIo (unreadable, a directory: the
  // message says so), kModuleRefused with reason "module-too-large" above bytes_max (both numbers
  // in the message).
  static Result<ModuleSource> FromFile(const std::string& path, std::uint64_t bytes_max);
  // As FromFile from an open descriptor; `name` is for messages. Does not take ownership.
  static Result<ModuleSource> FromDescriptor(int fd, std::string_view name,
                                             std::uint64_t bytes_max);
  static Result<ModuleSource> FromBytes(std::span<const std::uint8_t> bytes,
                                        std::uint64_t bytes_max);

  std::span<const std::uint8_t> bytes() const;
  int descriptor() const;
  // True if the bytes are not a binary module but could be WebAssembly text (valid start of a text
  // module: blanks and comments, then "("). Text must be converted in a worker (ConvertText in
  // run.h).
  bool LooksLikeText() const;

  // The whole verdict. Never fails: bytes that are no module give a refusal.
  Inspection Inspect(const ModulePolicy& policy) const;
  // Inspect + keep. kModuleRefused: reason = refusal code, message = its detail.
  Result<AdmittedModule> Admit(const ModulePolicy& policy) &&;

 private:
  explicit ModuleSource(std::shared_ptr<const admission::SealedImage> image)
      : image_(std::move(image)) {}

  std::shared_ptr<const admission::SealedImage> image_;
};

}  // namespace bulkhead
