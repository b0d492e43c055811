// The sketch profile: a module has to match the guest contract in every part.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "admission/byte_reader.h"
#include "admission/policy_checker.h"
#include "base/strings.h"
#include "contract/guest_abi.h"

namespace bulkhead::admission {
namespace {

constexpr std::size_t kShownNameBytesMax = 96;

std::string_view Text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class SketchChecker : public PolicyChecker {
 public:
  using PolicyChecker::PolicyChecker;

  void Run() {
    CheckMemory();
    CheckManifest();
    CheckImports();
    CheckExports();
    CheckStart();
    CheckCustomSections();
    CheckFeatures();
  }

 private:
  void CheckMemory() {
    if (scan().memories_imported > 1) {
      Refuse("multiple-memory-imports",
             fmt::format("the module imports {} memories, it has to import one",
                         scan().memories_imported));
    }
    if (scan().memories.size() > scan().memories_imported) {
      Refuse("defined-memory-forbidden",
             fmt::format("the module defines {} memories; it has to import its only one",
                         scan().memories.size() - scan().memories_imported));
    }
    const auto import =
        std::find_if(scan().imports.begin(), scan().imports.end(),
                     [](const ScanImport& item) { return item.kind == ExternKind::kMemory; });
    if (import == scan().imports.end()) {
      Refuse("missing-shared-memory", fmt::format("the module does not import the memory {}.{}",
                                                  contract::kMemoryModule, contract::kMemoryName));
      return;
    }
    if (import->module != contract::kMemoryModule || import->name != contract::kMemoryName) {
      Refuse("forbidden-import",
             fmt::format("the module imports the memory {}, it has to be {}.{}", Shown(*import),
                         contract::kMemoryModule, contract::kMemoryName));
    }
    const MemoryType& memory = scan().memories[import->index];
    if (!memory.shared) {
      Refuse("unshared-memory", "the imported memory is not shared");
      return;
    }
    CheckMemoryFits(memory);
    if (memory.pages_min != contract::kMemoryPagesMin ||
        memory.pages_max != contract::kMemoryPagesMax) {
      Refuse("threaded-memory-mismatch",
             fmt::format("the imported memory has {}, it must have {}..{} pages", ToText(memory),
                         contract::kMemoryPagesMin, contract::kMemoryPagesMax));
    }
  }

  // The policy has to leave room for what the contract lets a memory grow to, and for what this one
  // declares.
  void CheckMemoryFits(const MemoryType& memory) {
    const std::uint64_t pages =
        std::max({contract::kMemoryPagesMax, memory.pages_min, memory.pages_max.value_or(0)});
    const std::uint64_t pages_allowed = policy().memory_bytes_max >> MemoryType::kPageBytesLog2;
    if (pages > pages_allowed) {
      Refuse("shared-memory-exceeds-policy",
             fmt::format("the module's memory may have {} pages of 64 KiB, at most {} are allowed",
                         pages, pages_allowed));
    }
  }

  // The one section of that name; nothing if there is none or are several, which is refused.
  const ScanCustomSection* OneSection(std::string_view name, std::string_view missing,
                                      std::string_view twice) {
    const ScanCustomSection* found = nullptr;
    std::size_t count = 0;
    for (const ScanCustomSection& section : scan().custom_sections) {
      if (section.name == name) {
        found = &section;
        ++count;
      }
    }
    if (count == 0) {
      Refuse(missing, fmt::format("the module has no custom section {}", name));
    } else if (count > 1) {
      Refuse(twice, fmt::format("the module has {} custom sections {}", count, name));
    }
    return count == 1 ? found : nullptr;
  }

  void CheckManifest() {
    const ScanCustomSection* const section =
        OneSection(contract::kManifestSection, "missing-metadata", "duplicate-metadata");
    const std::string manifest = contract::ManifestText();
    if (section == nullptr || Text(section->content) == manifest) {
      return;
    }
    const auto [theirs, ours] = std::mismatch(
        section->content.begin(), section->content.end(), manifest.begin(), manifest.end(),
        [](auto a, char b) { return a == static_cast<std::uint8_t>(b); });
    Refuse("metadata-mismatch",
           fmt::format("the custom section {} differs from this version's contract in byte {}",
                       contract::kManifestSection, ours - manifest.begin()));
  }

  static const contract::Import* FindContract(const ScanImport& import) {
    const auto all = contract::Imports();
    const auto found = std::find_if(all.begin(), all.end(), [&](const contract::Import& item) {
      return item.module == import.module && item.name == import.name;
    });
    return import.kind == ExternKind::kFunction && found != all.end() ? &*found : nullptr;
  }

  void CheckImports() {
    std::set<contract::Function> seen;
    std::size_t refused = 0;
    for (const ScanImport& import : scan().imports) {
      if (import.kind == ExternKind::kMemory) {
        continue;
      }
      const contract::Import* const known = FindContract(import);
      const bool repeated = known != nullptr && !seen.insert(known->function).second;
      if (known == nullptr || repeated || TypeOf(import) != contract::TypeText(known->signature)) {
        if (refused++ < kRefusalsListedMax) {
          RefuseImport(import, known, repeated);
        }
      }
    }
    if (refused > kRefusalsListedMax) {
      Refuse("forbidden-import",
             fmt::format("{} more imports are refused", refused - kRefusalsListedMax));
    }
    RequireImports(seen);
  }

  std::string TypeOf(const ScanImport& import) const {
    return ExternTypeText(scan(), import.kind, import.index);
  }

  void RefuseImport(const ScanImport& import, const contract::Import* known, bool repeated) {
    if (known == nullptr) {
      Refuse("forbidden-import",
             fmt::format("the module imports {} {}, which the contract does not have",
                         ExternKindName(import.kind), Shown(import)));
    } else if (repeated) {
      Refuse("forbidden-import", fmt::format("the module imports {} twice", Shown(import)));
    } else {
      Refuse("import-type-mismatch",
             fmt::format("the module imports {} as {}, it is {}", Shown(import), TypeOf(import),
                         contract::TypeText(known->signature)));
    }
  }

  // A module can at least yield: by the one function, or by operations, which come whole.
  void RequireImports(const std::set<contract::Function>& seen) {
    using contract::Function;
    const auto triple = static_cast<int>(seen.contains(Function::kOperationSubmit)) +
                        static_cast<int>(seen.contains(Function::kOperationPoll)) +
                        static_cast<int>(seen.contains(Function::kOperationYield));
    const bool part_of_triple =
        triple == 1 || triple == 2 || (triple == 0 && seen.contains(Function::kOperationCancel));
    if (part_of_triple || (triple == 0 && !seen.contains(Function::kKernelYield))) {
      Refuse("missing-required-import",
             "the module has to import kernel_yield, or operation_submit, operation_poll and "
             "operation_yield together; operation_cancel goes with these three");
    }
  }

  void CheckExports() {
    const ScanExport* const memory = FindExport(contract::kMemoryExport);
    if (memory == nullptr || memory->kind != ExternKind::kMemory || memory->index != 0) {
      Refuse("memory-export-mismatch",
             fmt::format("the module has to export memory 0 as '{}'", contract::kMemoryExport));
    }
    for (const contract::Export& item : contract::Exports()) {
      CheckExport(item);
    }
    for (const ScanExport& item : scan().exports) {
      const auto all = contract::Exports();
      const bool known = item.name == contract::kMemoryExport ||
                         std::any_of(all.begin(), all.end(), [&](const contract::Export& expected) {
                           return expected.name == item.name;
                         });
      if (!known) {
        Refuse(
            "export-not-allowed",
            fmt::format("the module exports {} {}, which the contract does not have",
                        ExternKindName(item.kind), Quoted(CutUtf8(item.name, kShownNameBytesMax))));
        return;  // one of possibly many
      }
    }
  }

  void CheckExport(const contract::Export& expected) {
    const ScanExport* const found = FindExport(expected.name);
    if (found == nullptr || found->kind != ExternKind::kFunction) {
      Refuse("export-not-allowed",
             fmt::format("the module does not export the function '{}'", expected.name));
      return;
    }
    const std::string type = ExternTypeText(scan(), found->kind, found->index);
    const std::string wanted = contract::TypeText(expected.signature);
    if (type != wanted) {
      Refuse("import-type-mismatch", fmt::format("the module exports '{}' as {}, it must be {}",
                                                 expected.name, type, wanted));
    }
  }

  void CheckStart() {
    if (!scan().start_function) {
      Refuse("start-mismatch", "the module has no start section");
      return;
    }
    const std::string type = ExternTypeText(scan(), ExternKind::kFunction, *scan().start_function);
    if (type != kStartType) {
      Refuse("start-mismatch",
             fmt::format("the start function is {}, it must be {}", type, kStartType));
    }
  }

  void CheckCustomSections() {
    const auto allowed = contract::CustomSections();
    for (const ScanCustomSection& section : scan().custom_sections) {
      if (section.name == contract::kManifestSection ||
          section.name == contract::kFeaturesSection) {
        continue;
      }
      if (std::find(allowed.begin(), allowed.end(), section.name) == allowed.end()) {
        Refuse("forbidden-custom-section",
               fmt::format("the module has a custom section {}", ShownName(section)));
        return;  // one of possibly many
      }
      if (section.content.size() > contract::kCustomSectionBytesMax) {
        RefuseLarge(section);
      }
    }
  }

  static std::string ShownName(const ScanCustomSection& section) {
    return Quoted(CutUtf8(section.name, kShownNameBytesMax));
  }

  void RefuseLarge(const ScanCustomSection& section) {
    Refuse(
        "metadata-too-large",
        fmt::format("the custom section {} has {} bytes, at most {} are allowed",
                    ShownName(section), section.content.size(), contract::kCustomSectionBytesMax));
  }

  void CheckFeatures() {
    const ScanCustomSection* const section = OneSection(
        contract::kFeaturesSection, "missing-target-features", "target-features-mismatch");
    if (section == nullptr) {
      return;
    }
    // Every entry is kept until the comparison: a bound of the section bounds them all.
    if (section->content.size() > contract::kCustomSectionBytesMax) {
      RefuseLarge(*section);
      return;
    }
    std::set<std::string> found;
    if (!ReadFeatures(section->content, found)) {
      Refuse("target-features-mismatch",
             fmt::format("the custom section {} is no list of different features, each with '+'",
                         contract::kFeaturesSection));
      return;
    }
    const auto expected = contract::TargetFeatures();
    const std::set<std::string> wanted(expected.begin(), expected.end());
    if (found != wanted) {
      Refuse("target-features-mismatch",
             fmt::format("the module's target features are {}, they must be {}",
                         Quoted(CutUtf8(fmt::format("{}", fmt::join(found, " ")), 400)),
                         fmt::join(wanted, " ")));
    }
  }

  static bool ReadFeatures(std::span<const std::uint8_t> content, std::set<std::string>& features) {
    ByteReader reader(content, contract::kFeaturesSection);
    const Result<std::uint32_t> count = reader.U32("the number of features");
    if (!count || *count > content.size()) {
      return false;
    }
    for (std::uint32_t i = 0; i < *count; ++i) {
      const Result<std::uint8_t> prefix = reader.Byte("a feature's prefix");
      const Result<std::string_view> name =
          prefix ? reader.Name("a feature") : Result<std::string_view>(Fail(prefix.error()));
      if (!name || *prefix != '+' || !features.insert(std::string(*name)).second) {
        return false;
      }
    }
    return reader.remaining() == 0;
  }
};

}  // namespace

void CheckSketch(const Scan& scan, const ModulePolicy& policy, std::vector<Refusal>& refusals) {
  SketchChecker(scan, policy, refusals).Run();
}

}  // namespace bulkhead::admission
