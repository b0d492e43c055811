// `bulkhead version`, `bulkhead help` and the hidden `bulkhead --generate`: texts made from
// constants.
#include <fmt/core.h>

#include <string>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/completions.h"
#include "cli/exit_status.h"
#include "cli/help_text.h"
#include "cli/info_json.h"
#include "cli/man_page.h"
#include "cli/text_io.h"
#include "wire/frame.h"
#include "wire/handshake.h"

namespace bulkhead::cli {
namespace {

VersionInfo ThisVersion() {
  return {BH_VERSION, std::string(wire::BuildId()), wire::kProtocolVersion, ThisEngine()};
}

}  // namespace

int CmdVersion(const VersionOptions& options) {
  const VersionInfo info = ThisVersion();
  if (options.json) {
    return PrintResult(VersionJson(info));
  }
  const std::string support = info.engine.supported_until.empty()
                                  ? "support unknown"
                                  : fmt::format("supported until {}", info.engine.supported_until);
  return PrintResult(fmt::format("bulkhead {}\nbuild     {}\nprotocol  {}\nengine    {} {} ({})\n",
                                 info.version, info.build_id, info.protocol_version,
                                 info.engine.name, info.engine.version, support));
}

int CmdHelp(const HelpOptions& options) {
  return PrintResult(options.command == nullptr ? OverviewHelp() : CommandHelp(*options.command));
}

int CmdGenerate(const GenerateOptions& options) {
  if (options.what == "man") {
    return PrintResult(ManPage(BH_VERSION));
  }
  if (options.what == "bash") {
    return PrintResult(BashCompletion());
  }
  if (options.what == "zsh") {
    return PrintResult(ZshCompletion());
  }
  if (options.what == "fish") {
    return PrintResult(FishCompletion());
  }
  Say(fmt::format("--generate: {} is none of: man, bash, zsh, fish", Quoted(options.what)));
  return kExitUsage;
}

}  // namespace bulkhead::cli
