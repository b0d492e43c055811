#include "cli/man_page.h"

#include <fmt/core.h>

#include "cli/option_table.h"

namespace bulkhead::cli {
namespace {

// Text as roff shows it literally: no escape, no request at a line's start, hyphens that can be
// copied.
std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '.' && (out.empty() || out.back() == '\n')) {
      out += "\\&.";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Bold(std::string_view text) {
  return fmt::format("\\fB{}\\fR", Roff(text));
}

std::string Italic(std::string_view text) {
  return fmt::format("\\fI{}\\fR", Roff(text));
}

void AppendOption(std::string& out, const OptionSpec& option) {
  out += ".TP\n";
  if (!option.short_name.empty()) {
    out += Bold(option.short_name) + ", ";
  }
  out += Bold(option.name);
  if (!option.is_flag()) {
    out += " " + Italic(option.value_name);
  }
  out += "\n" + Roff(option.help);
  if (!option.choices.empty()) {
    std::string list;
    for (const std::string_view choice : option.choices) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", Bold(choice));
    }
    out += fmt::format(". One of: {}", list);
  }
  out += ".";
  if (!option.fallback.empty()) {
    out += " The default is " + Bold(option.fallback) + ".";
  }
  if (option.repeatable) {
    out += " May be given several times.";
  }
  out += "\n";
}

void AppendCommand(std::string& out, const CommandSpec& command) {
  out += fmt::format(".SS {} {}\n{}\n", Bold(fmt::format("bulkhead {}", command.name)),
                     Roff(command.synopsis), Roff(command.description));
  for (const OptionSpec& option : command.options) {
    AppendOption(out, option);
  }
}

void AppendExamples(std::string& out) {
  out += ".SH EXAMPLES\n";
  for (const CommandSpec& command : Commands()) {
    for (const Example& example : command.examples) {
      out += fmt::format(".TP\n{}\n{}\n", Bold(example.command_line), Roff(example.meaning));
    }
  }
}

constexpr std::string_view kSignals =
    ".SH SIGNALS\n"
    "The first SIGINT, SIGTERM or SIGHUP cancels the run: the guest is asked to stop and killed "
    "when the\n"
    "grace is over. A second one kills it at once. A signal that was ignored when the command "
    "started\n"
    "stays ignored. A cancelled run publishes nothing. In every case the worker is gone and the "
    "report is\n"
    "written before the command ends.\n";

constexpr std::string_view kReport =
    ".SH REPORT\n"
    "The report is one JSON object, replaced as a whole; a descriptor path such as /dev/stderr and "
    "a\n"
    "device are written to directly. If it cannot be written, the exit status is 125 where it "
    "would\n"
    "have been 0. The lines of \\fB\\-\\-status\\-fd\\fR are of the forms\n"
    ".PP\n"
    ".nf\n"
    "{\"event\":\"stage\",\"task\":\"run\",\"stage\":\"execute\",\"worker_pid\":4711}\n"
    "{\"event\":\"end\",\"code\":\"worker\\-completed\",\"exit_status\":0}\n"
    ".fi\n";

}  // namespace

std::string ManPage(std::string_view version) {
  std::string out = fmt::format(
      ".TH BULKHEAD 1 \"\" \"Bulkhead {}\" \"User Commands\"\n"
      ".SH NAME\n"
      "bulkhead \\- run untrusted WebAssembly in worker processes that can always be killed\n"
      ".SH SYNOPSIS\n",
      Roff(version));
  for (const CommandSpec& command : Commands()) {
    out += fmt::format("{} {}\n.br\n", Bold(fmt::format("bulkhead {}", command.name)),
                       Roff(command.synopsis));
  }
  out += ".SH COMMANDS\n";
  for (const CommandSpec& command : Commands()) {
    AppendCommand(out, command);
  }
  out += ".SH EXIT STATUS\n";
  for (const ExitStatusSpec& row : ExitStatuses()) {
    out += fmt::format(".TP\n{}\n{}\n", Bold(row.status), Roff(row.meaning));
  }
  out += kSignals;
  out += kReport;
  out += ".SH ENVIRONMENT\n";
  for (const VariableSpec& row : EnvironmentVariables()) {
    out += fmt::format(".TP\n{}\n{}\n", Bold(row.name), Roff(row.meaning));
  }
  AppendExamples(out);
  return out;
}

}  // namespace bulkhead::cli
