// `bulkhead guest-pack`: makes a linked sketch carry its contract.
#include <bulkhead/module.h>

#include <fmt/format.h>

#include <string_view>

#include "admission/guest_pack.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/report_file.h"
#include "cli/run_record.h"
#include "cli/text_io.h"

namespace bulkhead::cli {
namespace {

std::string_view AsText(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Empty if the sketch would be admitted; else every reason, a line each.
std::string RefusalsOf(const ModuleSource& module) {
  ModulePolicy policy;
  policy.profile = Profile::kSketch;
  std::string text;
  for (const Refusal& refusal : module.Inspect(policy).refusals) {
    text += fmt::format("\n  {}: {}", refusal.code, refusal.detail);
  }
  return text;
}

int SayRefused(const std::string& path, std::string_view refusals) {
  Say(fmt::format("{} is no sketch that would be admitted; nothing was written:{}", path,
                  refusals));
  return kExitRefused;
}

int StatusOf(const Error& error) {
  RunRecord record;
  RecordFailure(error, record);
  Say(error.message);
  return record.exit_status;
}

}  // namespace

int CmdGuestPack(const GuestPackOptions& options) {
  const auto module =
      ModuleSource::FromFile(options.module_path, ModulePolicy::kModuleBytesCeiling);
  if (!module) {
    return StatusOf(ModuleFailure(module.error()));
  }
  const auto packed = admission::PackGuest(module->bytes());
  if (!packed) {  // malformed, which admission says in more words
    return SayRefused(options.module_path, RefusalsOf(*module));
  }
  const auto result = ModuleSource::FromBytes(packed->bytes, ModulePolicy::kModuleBytesCeiling);
  if (!result) {
    return StatusOf(result.error());
  }
  if (const std::string refusals = RefusalsOf(*result); !refusals.empty()) {
    return SayRefused(options.module_path, refusals);
  }
  const auto destination = ReportDestination::Resolve(options.output_path);
  const Status written =
      destination ? destination->Write(AsText(packed->bytes)) : Status(Fail(destination.error()));
  if (!written) {
    Say("--output: " + written.error().message);
    return kExitFailed;
  }
  if (!packed->dropped.empty()) {
    Say(fmt::format("left out custom sections: {}",
                    CutUtf8(fmt::format("{}", fmt::join(packed->dropped, ", ")), 1000)));
  }
  return kExitOk;
}

}  // namespace bulkhead::cli
