#include "admission/policy_checker.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace bulkhead::admission {
namespace {

constexpr std::size_t kShownNameBytesMax = 96;

}  // namespace

const ScanExport* PolicyChecker::FindExport(std::string_view name) const {
  const auto found = std::find_if(scan_.exports.begin(), scan_.exports.end(),
                                  [&](const ScanExport& item) { return item.name == name; });
  return found != scan_.exports.end() ? &*found : nullptr;
}

void PolicyChecker::RequireEntryPoint(const EntryPoint& entry) {
  const ScanExport* const found = FindExport(entry.name);
  if (found == nullptr) {
    Refuse(entry.missing, fmt::format("the module exports no function '{}'", entry.name));
    return;
  }
  if (found->kind != ExternKind::kFunction) {
    Refuse(entry.missing, fmt::format("the module exports '{}' as a {}, not as a function",
                                      entry.name, ExternKindName(found->kind)));
    return;
  }
  const std::string type = ExternTypeText(scan_, found->kind, found->index);
  if (type != entry.type) {
    Refuse("entrypoint-mismatch", fmt::format("the module exports '{}' as {}, it must be {}",
                                              entry.name, type, entry.type));
  }
}

std::string PolicyChecker::Shown(const ScanImport& import) {
  return Quoted(CutUtf8(import.module, kShownNameBytesMax)) + "." +
         Quoted(CutUtf8(import.name, kShownNameBytesMax));
}

}  // namespace bulkhead::admission
