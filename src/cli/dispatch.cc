#include <signal.h>

#include <exception>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/text_io.h"

namespace bulkhead::cli {
namespace {

struct Dispatch {
  int operator()(const RunOptions& options) const { return CmdRun(options); }

  int operator()(const InspectOptions& options) const { return CmdInspect(options); }

  int operator()(const GuestPackOptions& options) const { return CmdGuestPack(options); }

  int operator()(const CacheOptions& options) const { return CmdCache(options); }

  int operator()(const DoctorOptions& options) const { return CmdDoctor(options); }

  int operator()(const AuditOptions& options) const { return CmdAudit(options); }

  int operator()(const VersionOptions& options) const { return CmdVersion(options); }

  int operator()(const HelpOptions& options) const { return CmdHelp(options); }

  int operator()(const GenerateOptions& options) const { return CmdGenerate(options); }
};

// A reader that left is an error of write(2) here, not a reason to die.
void IgnoreSigpipe() {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

int ParseAndRun(std::span<const char* const> arguments) {
  std::vector<std::string_view> words;
  for (const char* argument : arguments.subspan(arguments.empty() ? 0 : 1)) {
    words.emplace_back(argument);
  }
  const auto command = ParseOptions(words);
  if (!command) {
    Say(command.error().message);
    return kExitUsage;
  }
  return std::visit(Dispatch{}, *command);
}

}  // namespace

int Main(std::span<const char* const> arguments) {
  EnsureStandardDescriptors();
  IgnoreSigpipe();
  try {
    return ParseAndRun(arguments);
  } catch (const std::exception& error) {  // out of memory: nothing of ours throws
    Say(error.what());
    return kExitFailed;
  }
}

}  // namespace bulkhead::cli
