#include "cli/completions.h"

#include <fmt/format.h>

#include <string_view>

#include "cli/option_table.h"

namespace bulkhead::cli {
namespace {

// What a shell would interpret inside the quotes that surround `text`.
std::string Escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

// Inside single quotes a POSIX shell interprets nothing but the closing quote.
std::string SingleQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

std::string CommandNames() {
  std::string names;
  for (const CommandSpec& command : Commands()) {
    names += fmt::format("{} ", command.name);
  }
  return names + "help";
}

std::string OptionNames(const CommandSpec& command) {
  std::string names;
  for (const OptionSpec& option : command.options) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", option.name);
  }
  return names;
}

// The words of one option as an alternative of a bash `case`: "-o|--output".
std::string BashPattern(const OptionSpec& option) {
  return option.short_name.empty() ? std::string(option.name)
                                   : fmt::format("{}|{}", option.short_name, option.name);
}

std::string BashAction(const OptionSpec& option) {
  switch (option.completion) {
    case Completion::kFile:
      return "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")";
    case Completion::kDirectory:
      return "mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")";
    case Completion::kChoices:
      return fmt::format("mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$cur\")",
                         fmt::join(option.choices, " "));
    case Completion::kNothing:
      return "COMPREPLY=()";
  }
  return "COMPREPLY=()";
}

std::string BashCommand(const CommandSpec& command) {
  std::string out = fmt::format("    {})\n      case $prev in\n", command.name);
  for (const OptionSpec& option : command.options) {
    if (!option.is_flag()) {
      out += fmt::format("        {}) {}; return;;\n", BashPattern(option), BashAction(option));
    }
  }
  out += fmt::format(
      "      esac\n"
      "      if [[ $cur == -* ]]; then\n"
      "        mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$cur\")\n",
      OptionNames(command));
  if (command.takes_module) {
    out += "      else\n        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n";
  } else if (!command.actions.empty()) {
    out +=
        fmt::format("      else\n        mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$cur\")\n",
                    fmt::join(command.actions, " "));
  }
  return out + "      fi;;\n";
}

std::string ZshValue(const OptionSpec& option) {
  if (option.is_flag()) {
    return {};
  }
  const std::string name = Escaped(option.value_name, ":[]");
  switch (option.completion) {
    case Completion::kFile:
      return fmt::format(":{}:_files", name);
    case Completion::kDirectory:
      return fmt::format(":{}:_files -/", name);
    case Completion::kChoices:
      return fmt::format(":{}:({})", name, fmt::join(option.choices, " "));
    case Completion::kNothing:
      return fmt::format(":{}: ", name);
  }
  return {};
}

std::string ZshOption(const OptionSpec& option) {
  const std::string help = Escaped(option.help, "[]:\\");
  const std::string_view repeat = option.repeatable ? "*" : "";
  const std::string_view attached = option.is_flag() ? "" : "=";
  std::string out =
      fmt::format("        {}\n", SingleQuoted(fmt::format("{}{}{}[{}]{}", repeat, option.name,
                                                           attached, help, ZshValue(option))));
  if (!option.short_name.empty()) {
    out += fmt::format("        {}\n", SingleQuoted(fmt::format("{}[{}]{}", option.short_name, help,
                                                                ZshValue(option))));
  }
  return out;
}

// Fish escapes backslash and quote inside single quotes.
std::string FishQuoted(std::string_view text) {
  return "'" + Escaped(text, "\\'") + "'";
}

std::string FishOption(const CommandSpec& command, const OptionSpec& option) {
  std::string out = fmt::format("complete -c bulkhead -n '__fish_seen_subcommand_from {}' -l {}",
                                command.name, option.name.substr(2));
  if (!option.short_name.empty()) {
    out += fmt::format(" -s {}", option.short_name.substr(1));
  }
  switch (option.completion) {
    case Completion::kFile:
      out += " -r -F";
      break;
    case Completion::kDirectory:
      out += " -x -a '(__fish_complete_directories)'";
      break;
    case Completion::kChoices:
      out += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      break;
    case Completion::kNothing:
      out += option.is_flag() ? "" : " -x";
      break;
  }
  return out + fmt::format(" -d {}\n", FishQuoted(option.help));
}

}  // namespace

std::string BashCompletion() {
  std::string out = fmt::format(
      "# bash completion of bulkhead; generated.\n"
      "_bulkhead() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  [[ $cur == = ]] && cur=\n"
      "  [[ $prev == = ]] && prev=${{COMP_WORDS[COMP_CWORD-2]}}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"{0}\" -- \"$cur\")\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n"
      "    help) mapfile -t COMPREPLY < <(compgen -W \"{0}\" -- \"$cur\");;\n",
      CommandNames());
  for (const CommandSpec& command : Commands()) {
    out += BashCommand(command);
  }
  return out + "  esac\n}\ncomplete -o filenames -F _bulkhead bulkhead\n";
}

std::string ZshCompletion() {
  std::string out =
      "#compdef bulkhead\n"
      "# zsh completion of bulkhead; generated.\n"
      "_bulkhead() {\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const CommandSpec& command : Commands()) {
    out +=
        fmt::format("    {}\n", SingleQuoted(fmt::format("{}:{}", command.name, command.summary)));
  }
  out +=
      "    'help:explain a command'\n"
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local name=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $name in\n"
      "    help) _describe command commands;;\n";
  for (const CommandSpec& command : Commands()) {
    out += fmt::format("    {})\n      local -a specs=(\n", command.name);
    for (const OptionSpec& option : command.options) {
      out += ZshOption(option);
    }
    if (command.takes_module) {
      out += "        '1:module:_files -g \"*.(wasm|wat)\"'\n";
    } else if (!command.actions.empty()) {
      out += fmt::format("        '1:action:({})'\n", fmt::join(command.actions, " "));
    }
    out += "      )\n      _arguments $specs;;\n";
  }
  return out + "  esac\n}\n_bulkhead \"$@\"\n";
}

std::string FishCompletion() {
  std::string out = "# fish completion of bulkhead; generated.\n";
  for (const CommandSpec& command : Commands()) {
    out += fmt::format("complete -c bulkhead -f -n __fish_use_subcommand -a {} -d {}\n",
                       command.name, FishQuoted(command.summary));
  }
  out += fmt::format(
      "complete -c bulkhead -f -n __fish_use_subcommand -a help -d 'explain a command'\n"
      "complete -c bulkhead -f -n '__fish_seen_subcommand_from help' -a '{}'\n",
      CommandNames());
  for (const CommandSpec& command : Commands()) {
    for (const OptionSpec& option : command.options) {
      out += FishOption(command, option);
    }
    if (!command.takes_module) {
      out += fmt::format(
          "complete -c bulkhead -f -n '__fish_seen_subcommand_from {}'{}\n", command.name,
          command.actions.empty() ? "" : fmt::format(" -a '{}'", fmt::join(command.actions, " ")));
    }
  }
  return out;
}

}  // namespace bulkhead::cli
