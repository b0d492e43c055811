// `bulkhead doctor`: what the machine offers, and the proof: a module that runs in the default
// containment.
#include <bulkhead/module.h>
#include <bulkhead/run.h>

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "base/strings.h"
#include "cli/code_cache_place.h"
#include "cli/commands.h"
#include "cli/engine_support.h"
#include "cli/exit_status.h"
#include "cli/info_json.h"
#include "cli/machine_checks.h"
#include "cli/terminal.h"
#include "cli/text_io.h"
#include "cli/units.h"

namespace bulkhead::cli {
namespace {

constexpr int kExitNotContained = 1;

// (module (func (export "_start")))
constexpr std::array<std::uint8_t, 36> kTinyModule{
    0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,                        // magic, version
    0x01, 0x04, 0x01, 0x60, 0x00, 0x00,                                    // type: () -> ()
    0x03, 0x02, 0x01, 0x00,                                                // one function of it
    0x07, 0x0a, 0x01, 0x06, '_',  's',  't',  'a',  'r', 't', 0x00, 0x00,  // exported
    0x0a, 0x04, 0x01, 0x02, 0x00, 0x0b};                                   // its empty body

Result<RunReport> RunTinyModule(const std::string& worker) {
  const auto runtime = BH_TRY(Runtime::Create({}));
  const ModulePolicy policy;
  ModuleSource source = BH_TRY(ModuleSource::FromBytes(kTinyModule, policy.module_bytes_max));
  const AdmittedModule module = BH_TRY(std::move(source).Admit(policy));
  RunRequest request;
  request.worker.executable = worker;
  request.arguments.emplace_back("doctor");
  return RunModule(*runtime, module, request);
}

MachineCheck Failed(std::string name, std::string finding, std::string fix) {
  return {std::move(name), CheckState::kMissing, std::move(finding), "nothing can be run",
          std::move(fix)};
}

void CheckWorker(MachineReport& machine) {
  const auto worker = FindWorker(kWasmWorkerName);
  if (!worker) {
    machine.checks.push_back(
        Failed("worker", worker.error().message,
               "install the worker beside this program, or set BULKHEAD_WORKER_DIR"));
    return;
  }
  machine.checks.push_back({"worker", CheckState::kOk, *worker, {}, {}});
  const auto report = RunTinyModule(*worker);
  if (!report) {
    machine.checks.push_back(Failed("trial-run", report.error().message, "see the checks above"));
    return;
  }
  if (!report->outcome.completed()) {
    machine.checks.push_back(
        Failed("trial-run",
               fmt::format("{}: {}", report->outcome.CodeText(), Printable(report->diagnostic)),
               "see the checks above; a worker of another build must be replaced"));
    return;
  }
  machine.contained = true;
  machine.containment = report->containment;
  machine.checks.push_back(
      {"trial-run",
       CheckState::kOk,
       fmt::format("a module ran contained in {} ({})", FormatDuration(report->elapsed),
                   fmt::join(report->containment, ", ")),
       {},
       {}});
}

// Runs work without it, only slower.
void CheckCodeCache(MachineReport& machine) {
  const auto opened = OpenCache({});
  if (!opened || opened->cache == nullptr) {
    machine.checks.push_back({"code-cache", CheckState::kDegraded,
                              opened ? opened->problem : opened.error().message,
                              "every run compiles its module",
                              "name a directory of your own by XDG_CACHE_HOME or --cache"});
    return;
  }
  const auto stat = opened->cache->Stat();
  machine.checks.push_back({"code-cache",
                            CheckState::kOk,
                            stat ? fmt::format("{}: {} entries, {}", opened->cache->directory(),
                                               stat->entries, FormatSize(stat->bytes))
                                 : opened->cache->directory(),
                            {},
                            {}});
}

std::string ChecksText(const MachineReport& machine, bool colours) {
  std::string text;
  for (const MachineCheck& check : machine.checks) {
    Colour colour = Colour::kGreen;
    if (check.state != CheckState::kOk) {
      colour = check.state == CheckState::kMissing ? Colour::kRed : Colour::kYellow;
    }
    constexpr std::size_t kStateColumns = 8;
    constexpr std::size_t kNameColumns = 15;
    const std::string state = fmt::format("{:<{}}", CheckStateName(check.state), kStateColumns);
    text += fmt::format("{}  {:<{}}  {}\n", Coloured(state, colour, colours), check.name,
                        kNameColumns, Printable(check.finding));
    if (check.state != CheckState::kOk) {
      const std::string indent(kStateColumns + kNameColumns + 4, ' ');
      text += fmt::format("{}cost: {}\n{}fix:  {}\n", indent, check.cost, indent, check.fix);
    }
  }
  return text + (machine.contained ? "\nRuns can be contained at the default level.\n"
                                   : "\nRuns can not be contained at the default level.\n");
}

}  // namespace

int CmdDoctor(const DoctorOptions& options) {
  MachineReport machine;
  machine.checks = CheckMachine();
  machine.checks.push_back(CheckEngine(ThisEngine(), Today()));
  CheckCodeCache(machine);
  CheckWorker(machine);
  const bool colours = TerminalOf(BorrowedFd(STDOUT_FILENO)).colours;
  const int printed =
      PrintResult(options.json ? DoctorJson(machine) : ChecksText(machine, colours));
  if (printed != kExitOk) {
    return printed;
  }
  return machine.contained ? kExitOk : kExitNotContained;
}

}  // namespace bulkhead::cli
