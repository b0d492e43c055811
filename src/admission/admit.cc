#include "admission/admit.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "admission/module_policy.h"
#include "admission/wasm_scan.h"
#include "base/strings.h"

namespace bulkhead::admission {
namespace {

std::string ListedName(std::string_view name) {
  return std::string(CutUtf8(name, kListedNameBytesMax));
}

// Fills everything but the profile from what was scanned, complete or not.
void Describe(const Scan& scan, ModuleInfo& info) {
  for (std::size_t i = 0; i < scan.memories.size(); ++i) {
    const MemoryType& memory = scan.memories[i];
    info.memories.push_back({i < scan.memories_imported, memory.shared, memory.memory64,
                             memory.pages_min, memory.pages_max});
  }
  for (std::size_t i = 0; i < std::min(scan.imports.size(), kListedMax); ++i) {
    const ScanImport& import = scan.imports[i];
    info.imports.push_back({ListedName(import.module), ListedName(import.name),
                            std::string(ExternKindName(import.kind)),
                            ExternTypeText(scan, import.kind, import.index)});
  }
  for (std::size_t i = 0; i < std::min(scan.exports.size(), kListedMax); ++i) {
    const ScanExport& item = scan.exports[i];
    info.exports.push_back({ListedName(item.name), std::string(ExternKindName(item.kind)),
                            ExternTypeText(scan, item.kind, item.index)});
  }
  for (std::size_t i = 0; i < std::min(scan.custom_sections.size(), kListedMax); ++i) {
    info.custom_sections.push_back(ListedName(scan.custom_sections[i].name));
  }
  info.import_count = scan.imports.size();
  info.export_count = scan.exports.size();
  info.functions = scan.function_types.size() - scan.functions_imported;
  info.has_start_section = scan.start_function.has_value();
}

// Position after the comment that begins at `begin`, npos if `text` ends inside. Comments nest.
std::size_t SkipBlockComment(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  for (std::size_t i = begin; i + 1 < text.size();) {
    const std::string_view pair = text.substr(i, 2);
    if (pair == "(;") {
      ++depth;
      i += 2;
    } else if (pair == ";)") {
      --depth;
      i += 2;
      if (depth == 0) {
        return i;
      }
    } else {
      ++i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

bool LooksLikeText(std::span<const std::uint8_t> bytes) {
  const std::span<const std::uint8_t> look = bytes.first(std::min(bytes.size(), kTextLookBytesMax));
  // char and uint8_t view the same bytes.
  const std::string_view text(reinterpret_cast<const char*>(look.data()), look.size());
  std::size_t i = 0;
  while ((i = text.find_first_not_of(" \t\r\n", i)) != std::string_view::npos) {
    const std::string_view pair = text.substr(i, 2);
    if (pair == ";;") {
      i = text.find('\n', i);
    } else if (pair == "(;") {
      i = SkipBlockComment(text, i);
    } else {
      return pair.front() == '(';
    }
    if (i == std::string_view::npos) {
      return false;
    }
  }
  return false;
}

Inspection InspectBytes(std::span<const std::uint8_t> bytes, const ModulePolicy& policy) {
  Inspection inspection;
  inspection.info.bytes = bytes.size();
  const auto refuse = [&](Error error) {
    inspection.refusals.push_back({std::move(error.reason), std::move(error.message)});
  };
  if (LooksLikeText(bytes)) {
    inspection.refusals.push_back(
        {"text-module", "the module is WebAssembly text; convert it to binary first"});
    return inspection;
  }
  if (Status fits = CheckModuleBytes(bytes.size(), policy.module_bytes_max); !fits) {
    refuse(std::move(fits).error());
    return inspection;
  }
  Scan scan;
  Status scanned = ScanModule(bytes, scan);
  Describe(scan, inspection.info);
  if (!scanned) {
    refuse(std::move(scanned).error());
    return inspection;
  }
  inspection.info.profile = DetectProfile(scan);
  inspection.refusals = CheckPolicy(scan, policy);
  return inspection;
}

}  // namespace bulkhead::admission
