#include "admission/module_policy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "admission/byte_reader.h"
#include "admission/preview1_imports.h"
#include "base/strings.h"

namespace bulkhead {
namespace {

constexpr std::array<std::pair<Profile, std::string_view>, 4> kProfileNames = {{
    {Profile::kAuto, "auto"},
    {Profile::kWasi, "wasi"},
    {Profile::kWasiThreads, "wasi-threads"},
    {Profile::kSketch, "sketch"},
}};

}  // namespace

std::string_view ProfileName(Profile profile) {
  for (const auto& [value, name] : kProfileNames) {
    if (value == profile) {
      return name;
    }
  }
  return "unknown";
}

std::optional<Profile> ParseProfile(std::string_view name) {
  for (const auto& [value, known] : kProfileNames) {
    if (known == name) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace bulkhead

namespace bulkhead::admission {
namespace {

constexpr std::string_view kThreadsModule = "wasi";
constexpr std::string_view kThreadSpawn = "thread-spawn";
constexpr std::string_view kThreadStart = "wasi_thread_start";
constexpr std::string_view kStart = "_start";
constexpr std::string_view kInitialize = "_initialize";
constexpr std::string_view kStartType = "() -> ()";
constexpr std::size_t kShownNameBytesMax = 96;
constexpr std::uint64_t kBytesUnbounded = ~std::uint64_t{0};

std::string ShownImport(const ScanImport& import) {
  return Quoted(CutUtf8(import.module, kShownNameBytesMax)) + "." +
         Quoted(CutUtf8(import.name, kShownNameBytesMax));
}

const ScanExport* FindExport(const Scan& scan, std::string_view name) {
  const auto found = std::find_if(scan.exports.begin(), scan.exports.end(),
                                  [&](const ScanExport& item) { return item.name == name; });
  return found != scan.exports.end() ? &*found : nullptr;
}

bool ExportsFunction(const Scan& scan, std::string_view name) {
  const ScanExport* const found = FindExport(scan, name);
  return found != nullptr && found->kind == ExternKind::kFunction;
}

// Minimum of a memory in bytes, kBytesUnbounded when that is 2^64 or more.
std::uint64_t MinimumBytes(const MemoryType& memory) {
  return memory.pages_min > (kBytesUnbounded >> memory.page_bytes_log2)
             ? kBytesUnbounded
             : memory.pages_min << memory.page_bytes_log2;
}

class Checker {
 public:
  Checker(const Scan& scan, const ModulePolicy& policy) : scan_(scan), policy_(policy) {}

  std::vector<Refusal> Run() {
    CheckMemories();
    const Profile profile = DetectProfile(scan_);
    CheckProfile(profile);
    if (profile == Profile::kWasi) {
      CheckWasiImports();
      CheckWasiStart();
    }
    return std::move(refusals_);
  }

 private:
  void Refuse(std::string_view code, std::string detail) {
    refusals_.push_back({std::string(code), std::move(detail)});
  }

  void CheckMemories() {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < scan_.memories.size(); ++i) {
      CheckMemory(i);
      const std::uint64_t more = MinimumBytes(scan_.memories[i]);
      bytes = more > kBytesUnbounded - bytes ? kBytesUnbounded : bytes + more;
    }
    if (bytes > policy_.memory_bytes_max) {
      Refuse("memory-exceeds-policy",
             fmt::format("the module's memories begin with {}{} bytes, at most {} are allowed",
                         bytes == kBytesUnbounded ? "more than " : "", bytes,
                         policy_.memory_bytes_max));
    }
  }

  void CheckMemory(std::size_t index) {
    const MemoryType& memory = scan_.memories[index];
    if (memory.memory64) {
      Refuse("memory64",
             fmt::format("memory {} has 64-bit addresses; only 32-bit memories run", index));
    }
    if (memory.page_bytes_log2 != MemoryType::kPageBytesLog2) {
      Refuse("unsupported-memory-page-size",
             fmt::format("memory {} has pages of {} bytes; only 65536 is supported", index,
                         1U << memory.page_bytes_log2));
    }
    if (memory.shared && !memory.pages_max) {
      Refuse("shared-memory-without-maximum",
             fmt::format("shared memory {} declares no maximum", index));
    }
    if (memory.pages_max && *memory.pages_max < memory.pages_min) {
      Refuse("memory-initial-exceeds-maximum",
             fmt::format("memory {} begins with {} pages, above its maximum of {}", index,
                         memory.pages_min, *memory.pages_max));
    }
    if (memory.shared && index >= scan_.memories_imported) {
      Refuse("defined-shared-memory",
             fmt::format("memory {} is shared and defined by the module; a shared memory must be "
                         "imported, or no limit would hold for it",
                         index));
    }
  }

  void CheckProfile(Profile profile) {
    if (policy_.profile != Profile::kAuto && policy_.profile != profile) {
      Refuse("profile-mismatch", fmt::format("the module has profile '{}', '{}' was asked for",
                                             ProfileName(profile), ProfileName(policy_.profile)));
    }
    if (profile != Profile::kWasi) {
      Refuse("profile-not-supported",
             fmt::format("the module has profile '{}'; this version runs only '{}'",
                         ProfileName(profile), ProfileName(Profile::kWasi)));
    }
  }

  void CheckWasiImports() {
    const std::size_t before = refusals_.size();
    std::size_t unlisted = 0;
    for (const ScanImport& import : scan_.imports) {
      std::optional<Refusal> refusal = CheckWasiImport(import);
      if (!refusal) {
        continue;
      }
      if (refusals_.size() - before < kRefusalsListedMax) {
        refusals_.push_back(*std::move(refusal));
      } else {
        ++unlisted;
      }
    }
    if (unlisted > 0) {
      Refuse("forbidden-import", fmt::format("{} more imports are refused", unlisted));
    }
  }

  std::optional<Refusal> CheckWasiImport(const ScanImport& import) const {
    if (import.kind == ExternKind::kMemory) {
      return Refusal{
          "imported-memory",
          fmt::format("the module imports memory {}; profile 'wasi' modules bring their own",
                      ShownImport(import))};
    }
    const Preview1Function* const known =
        import.kind == ExternKind::kFunction && import.module == kPreview1Module
            ? FindPreview1Function(import.name)
            : nullptr;
    if (known == nullptr) {
      return Refusal{
          "forbidden-import",
          fmt::format("the module imports {} {}; profile 'wasi' offers the functions of {} only",
                      ExternKindName(import.kind), ShownImport(import), kPreview1Module)};
    }
    const std::string type = ExternTypeText(scan_, import.kind, import.index);
    if (type != known->type) {
      return Refusal{"import-type-mismatch", fmt::format("the module imports {} as {}, it is {}",
                                                         ShownImport(import), type, known->type)};
    }
    return std::nullopt;
  }

  void CheckWasiStart() {
    const ScanExport* const start = FindExport(scan_, kStart);
    if (start == nullptr) {
      Refuse("missing-start", ExportsFunction(scan_, kInitialize)
                                  ? "the module is a reactor (it exports '_initialize' and no "
                                    "'_start'); build it as a command"
                                  : "the module exports no function '_start'");
      return;
    }
    if (start->kind != ExternKind::kFunction) {
      Refuse("missing-start", fmt::format("the module exports '_start' as a {}, not as a function",
                                          ExternKindName(start->kind)));
      return;
    }
    const std::string type = ExternTypeText(scan_, start->kind, start->index);
    if (type != kStartType) {
      Refuse("entrypoint-mismatch",
             fmt::format("the module exports '_start' as {}, it must be {}", type, kStartType));
    }
  }

  const Scan& scan_;
  const ModulePolicy& policy_;
  std::vector<Refusal> refusals_;
};

}  // namespace

std::uint64_t ModuleBytesLimit(std::uint64_t bytes_max) {
  return std::min(bytes_max, ModulePolicy::kModuleBytesCeiling);
}

Status CheckModuleBytes(std::uint64_t bytes, std::uint64_t bytes_max) {
  const std::uint64_t limit = ModuleBytesLimit(bytes_max);
  if (bytes > limit) {
    return Refused("module-too-large",
                   fmt::format("the module has {} bytes, at most {} are allowed", bytes, limit));
  }
  return {};
}

Profile DetectProfile(const Scan& scan) {
  const auto imports = [&](std::string_view module, std::optional<std::string_view> name) {
    return std::any_of(scan.imports.begin(), scan.imports.end(), [&](const ScanImport& import) {
      return import.module == module && (!name || import.name == *name);
    });
  };
  const auto& sections = scan.custom_sections;
  if (imports(kSketchModule, std::nullopt) ||
      std::find(sections.begin(), sections.end(), kSketchSection) != sections.end()) {
    return Profile::kSketch;
  }
  if (imports(kThreadsModule, kThreadSpawn) || ExportsFunction(scan, kThreadStart)) {
    return Profile::kWasiThreads;
  }
  return Profile::kWasi;
}

std::vector<Refusal> CheckPolicy(const Scan& scan, const ModulePolicy& policy) {
  return Checker(scan, policy).Run();
}

}  // namespace bulkhead::admission
