#include "cli/help_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace bulkhead::cli {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kHelpColumn = 26;  // where the explanations start

// Appends `text` broken at blanks, each line indented by `indent`; the cursor is at `column` to
// begin with.
void AppendWrapped(std::string& out, std::string_view text, std::size_t indent,
                   std::size_t column) {
  bool line_start = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!line_start && column + 1 + word.size() > kColumns) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
      line_start = true;
    }
    if (!line_start) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    line_start = false;
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  out += '\n';
}

// "  LEFT      RIGHT", the right side wrapped.
void AppendRow(std::string& out, std::string_view left, std::string_view right) {
  std::string start = fmt::format("  {}", left);
  if (start.size() + 2 > kHelpColumn) {
    out += start + '\n';
    start.clear();
  }
  start.resize(kHelpColumn, ' ');
  out += start;
  AppendWrapped(out, right, kHelpColumn, kHelpColumn);
}

std::string OptionLeft(const OptionSpec& option) {
  return fmt::format("{}{}{}{}{}", option.short_name, option.short_name.empty() ? "    " : ", ",
                     option.name, option.is_flag() ? "" : " ", option.value_name);
}

std::string OptionRight(const OptionSpec& option) {
  std::string notes;
  const auto add = [&](std::string_view note) {
    notes += fmt::format("{}{}", notes.empty() ? "" : "; ", note);
  };
  if (!option.choices.empty()) {
    add(fmt::format("one of: {}", fmt::join(option.choices, ", ")));
  }
  if (!option.fallback.empty()) {
    add(fmt::format("default: {}", option.fallback));
  }
  if (option.repeatable) {
    add("repeatable");
  }
  return notes.empty() ? std::string(option.help) : fmt::format("{} ({})", option.help, notes);
}

void AppendOptions(std::string& out, const CommandSpec& command) {
  std::vector<std::string_view> groups;
  for (const OptionSpec& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  for (const std::string_view group : groups) {
    out += fmt::format("\n{}:\n", group);
    for (const OptionSpec& option : command.options) {
      if (option.group == group) {
        AppendRow(out, OptionLeft(option), OptionRight(option));
      }
    }
  }
}

void AppendExamples(std::string& out, const CommandSpec& command) {
  out += "\nExamples:\n";
  for (const Example& example : command.examples) {
    out += fmt::format("  {}\n      {}\n", example.command_line, example.meaning);
  }
}

void AppendExitStatuses(std::string& out) {
  out += "\nExit status:\n";
  for (const ExitStatusSpec& row : ExitStatuses()) {
    AppendRow(out, row.status, row.meaning);
  }
}

}  // namespace

std::string OverviewHelp() {
  std::string out =
      "Bulkhead runs untrusted WebAssembly in worker processes that can always be killed.\n\n"
      "Usage: bulkhead COMMAND [OPTION]...\n\nCommands:\n";
  for (const CommandSpec& command : Commands()) {
    AppendRow(out, command.name, command.summary);
  }
  AppendRow(out, "help [COMMAND]", "explain a command");
  out += "\nExamples:\n";
  for (const CommandSpec& command : Commands()) {
    out += fmt::format("  {}\n", command.examples.front().command_line);
  }
  return out;
}

std::string CommandHelp(const CommandSpec& command) {
  std::string out = fmt::format("Usage: bulkhead {} {}\n\n", command.name, command.synopsis);
  AppendWrapped(out, command.description, 0, 0);
  AppendOptions(out, command);
  AppendExamples(out, command);
  if (command.name == "run") {
    AppendExitStatuses(out);
  }
  return out;
}

}  // namespace bulkhead::cli
