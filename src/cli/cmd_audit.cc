// `bulkhead audit`: what holds a live worker, as /proc shows it to somebody else.
#include <fmt/format.h>
#include <unistd.h>

#include "base/strings.h"
#include "cli/audit.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/info_json.h"
#include "cli/terminal.h"
#include "cli/text_io.h"

namespace bulkhead::cli {
namespace {

constexpr int kExitWeaker = 1;

Colour ColourOf(const AuditFinding& finding) {
  if (finding.state == AuditState::kOk) {
    return Colour::kGreen;
  }
  return finding.state == AuditState::kWeaker && finding.promised ? Colour::kRed : Colour::kYellow;
}

std::string FindingText(const AuditFinding& finding, bool colours) {
  constexpr std::size_t kStateColumns = 7;
  constexpr std::size_t kNameColumns = 22;
  const std::string state = fmt::format("{:<{}}", AuditStateName(finding.state), kStateColumns);
  std::string text = fmt::format("{}  {:<{}}  {}", Coloured(state, ColourOf(finding), colours),
                                 finding.mechanism, kNameColumns, Printable(finding.finding));
  if (!finding.meaning.empty()) {
    text += fmt::format(" ({})", Printable(finding.meaning));
  }
  return text + '\n';
}

std::string AuditText(const Audit& audit, bool colours) {
  std::string text;
  for (const AuditFinding& finding : audit.findings) {
    text += FindingText(finding, colours);
  }
  return text + fmt::format("\nProcess {} ({}) {} what the level default promises everywhere.\n",
                            audit.pid, Printable(audit.program),
                            audit.holds() ? "shows nothing weaker than" : "lacks some of");
}

Result<Audit> AuditProcess(pid_t pid) {
  const ProcessView own = BH_TRY(ViewProcess(getpid()));
  return JudgeProcess(BH_TRY(ViewProcess(pid)), own);
}

}  // namespace

int CmdAudit(const AuditOptions& options) {
  const auto audit = AuditProcess(options.pid);
  if (!audit) {
    Say(fmt::format("process {}: {}", options.pid, audit.error().message));
    return audit.error().code == ErrorCode::kNotFound ? kExitNotFound : kExitFailed;
  }
  const bool colours = TerminalOf(BorrowedFd(STDOUT_FILENO)).colours;
  const int printed = PrintResult(options.json ? AuditJson(*audit) : AuditText(*audit, colours));
  if (printed != kExitOk) {
    return printed;
  }
  return audit->holds() ? kExitOk : kExitWeaker;
}

}  // namespace bulkhead::cli
