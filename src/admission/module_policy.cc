#include "admission/module_policy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "admission/byte_reader.h"
#include "admission/policy_checker.h"
#include "contract/guest_abi.h"

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

constexpr std::uint64_t kBytesUnbounded = ~std::uint64_t{0};

// Minimum of a memory in bytes, kBytesUnbounded when that is 2^64 or more.
std::uint64_t MinimumBytes(const MemoryType& memory) {
  return memory.pages_min > (kBytesUnbounded >> memory.page_bytes_log2)
             ? kBytesUnbounded
             : memory.pages_min << memory.page_bytes_log2;
}

// What holds in every profile.
class CommonChecker : public PolicyChecker {
 public:
  using PolicyChecker::PolicyChecker;

  void Run(Profile profile) {
    for (std::size_t i = 0; i < scan().memories.size(); ++i) {
      CheckMemory(i);
    }
    if (profile != Profile::kSketch) {  // has a fixed memory: CheckSketch compares that
      CheckBeginning();
    }
    if (policy().profile != Profile::kAuto && policy().profile != profile) {
      Refuse("profile-mismatch", fmt::format("the module has profile '{}', '{}' was asked for",
                                             ProfileName(profile), ProfileName(policy().profile)));
    }
  }

 private:
  void CheckBeginning() {
    std::uint64_t bytes = 0;
    for (const MemoryType& memory : scan().memories) {
      const std::uint64_t more = MinimumBytes(memory);
      bytes = more > kBytesUnbounded - bytes ? kBytesUnbounded : bytes + more;
    }
    if (bytes > policy().memory_bytes_max) {
      Refuse("memory-exceeds-policy",
             fmt::format("the module's memories begin with {}{} bytes, at most {} are allowed",
                         bytes == kBytesUnbounded ? "more than " : "", bytes,
                         policy().memory_bytes_max));
    }
  }

  void CheckMemory(std::size_t index) {
    const MemoryType& memory = scan().memories[index];
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
    if (memory.shared && index >= scan().memories_imported) {
      Refuse("defined-shared-memory",
             fmt::format("memory {} is shared and defined by the module; a shared memory must be "
                         "imported, or no limit would hold for it",
                         index));
    }
  }
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
  const bool has_manifest = std::any_of(
      scan.custom_sections.begin(), scan.custom_sections.end(),
      [](const ScanCustomSection& section) { return section.name == contract::kManifestSection; });
  if (has_manifest || imports(contract::kNamespace, std::nullopt)) {
    return Profile::kSketch;
  }
  const bool has_thread_start =
      std::any_of(scan.exports.begin(), scan.exports.end(), [](const ScanExport& item) {
        return item.kind == ExternKind::kFunction && item.name == kThreadStart;
      });
  const auto imported_end = scan.memories.begin() + scan.memories_imported;
  const bool shares_memory = std::any_of(scan.memories.begin(), imported_end,
                                         [](const MemoryType& memory) { return memory.shared; });
  if (shares_memory || has_thread_start || imports(kThreadsModule, kThreadSpawn)) {
    return Profile::kWasiThreads;
  }
  return Profile::kWasi;
}

std::vector<Refusal> CheckPolicy(const Scan& scan, const ModulePolicy& policy) {
  std::vector<Refusal> refusals;
  const Profile profile = DetectProfile(scan);
  CommonChecker(scan, policy, refusals).Run(profile);
  switch (profile) {
    case Profile::kAuto:  // no module has it
    case Profile::kWasi:
      CheckWasi(scan, policy, refusals);
      break;
    case Profile::kWasiThreads:
      CheckWasiThreads(scan, policy, refusals);
      break;
    case Profile::kSketch:
      CheckSketch(scan, policy, refusals);
      break;
  }
  return refusals;
}

}  // namespace bulkhead::admission
