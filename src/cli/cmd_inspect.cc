// `bulkhead inspect`: admission's view of a module. Text is translated in a worker; nothing of the
// module is run.
#include <bulkhead/module.h>
#include <bulkhead/run.h>

#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/info_json.h"
#include "cli/interrupt.h"
#include "cli/run_record.h"
#include "cli/text_io.h"

namespace bulkhead::cli {
namespace {

Result<ModuleSource> Convert(const ModuleSource& text, Interrupts& interrupts) {
  const auto runtime = BH_TRY(Runtime::Create({}));
  RunRequest request;
  request.worker.executable = BH_TRY(FindWorker(kWasmWorkerName));
  request.cancel = interrupts.cancel();
  request.force = interrupts.force();
  return ConvertText(*runtime, text, request);
}

Result<Inspection> Look(const std::string& path, int& signal) {
  const ModulePolicy policy;
  auto file = ModuleSource::FromFile(path, policy.module_bytes_max);
  if (!file) {
    return Fail(ModuleFailure(std::move(file).error()));
  }
  if (!file->LooksLikeText()) {
    return file->Inspect(policy);
  }
  const auto interrupts = BH_TRY(Interrupts::Create());
  const auto binary = Convert(*file, *interrupts);
  signal = interrupts->first_signal();
  if (!binary) {
    return Fail(binary.error());
  }
  return binary->Inspect(policy);
}

std::string Pages(const ModuleInfo::Memory& memory) {
  constexpr std::uint64_t kPageKibibytes = 64;
  const std::string most =
      memory.pages_max ? fmt::format(" to {}", *memory.pages_max) : " and more";
  return fmt::format("{}{} pages of {} KiB", memory.pages_min, most, kPageKibibytes);
}

std::string InspectionText(const std::string& path, const Inspection& inspection) {
  const ModuleInfo& info = inspection.info;
  std::string text =
      fmt::format("{}: {}\n", path, inspection.refusals.empty() ? "admissible" : "refused");
  for (const Refusal& refusal : inspection.refusals) {
    text += fmt::format("  {}: {}\n", refusal.code, refusal.detail);
  }
  if (info.profile == Profile::kAuto) {
    return text;
  }
  text += fmt::format("profile:   {}\nsize:      {} bytes, {} functions\n",
                      ProfileName(info.profile), info.bytes, info.functions);
  for (const ModuleInfo::Memory& memory : info.memories) {
    text += fmt::format("memory:    {}{}{}{}\n", Pages(memory), memory.imported ? ", imported" : "",
                        memory.shared ? ", shared" : "", memory.memory64 ? ", 64-bit" : "");
  }
  for (const ModuleInfo::Import& item : info.imports) {
    text += fmt::format("import:    {} {}.{} {}\n", item.kind, item.module, item.name, item.type);
  }
  if (info.import_count > info.imports.size()) {
    text +=
        fmt::format("           and {} more imports\n", info.import_count - info.imports.size());
  }
  for (const ModuleInfo::Export& item : info.exports) {
    text += fmt::format("export:    {} {} {}\n", item.kind, item.name, item.type);
  }
  if (info.export_count > info.exports.size()) {
    text +=
        fmt::format("           and {} more exports\n", info.export_count - info.exports.size());
  }
  return text;
}

}  // namespace

int CmdInspect(const InspectOptions& options) {
  int signal = 0;
  auto inspection = Look(options.module_path, signal);
  int status = kExitOk;
  if (!inspection) {
    RunRecord record;
    record.signal = signal;
    RecordFailure(inspection.error(), record);
    status = record.exit_status;
    if (!options.json || record.report.outcome.code != OutcomeCode::kModuleRefused) {
      Say(inspection.error().message);
      return status;
    }
    inspection = Inspection{{}, {{record.report.outcome.reason, record.report.diagnostic}}};
  } else if (!inspection->refusals.empty()) {
    status = kExitRefused;
  }
  const int printed =
      PrintResult(options.json ? InspectionJson(options.module_path, *inspection)
                               : Printable(InspectionText(options.module_path, *inspection)));
  return printed == kExitOk ? status : printed;
}

}  // namespace bulkhead::cli
