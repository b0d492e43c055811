// The one table of commands, options and exit statuses. The parser, --help, the man page and the
// completions are all made from it, so that they cannot disagree. Constant data; views live as long
// as the program.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace bulkhead::cli {

// What completion offers for a value.
enum class Completion : std::uint8_t { kNothing, kFile, kDirectory, kChoices };

// The initializers let the table leave members out (g++ asks for them).
// NOLINTBEGIN(readability-redundant-member-init)
struct OptionSpec {
  std::string_view name = {};        // "--deadline"
  std::string_view short_name = {};  // "-q", or empty
  std::string_view value_name = {};  // "DUR"; empty: the option is a flag
  std::string_view fallback = {};    // the default as the user would type it, or empty
  std::string_view group = {};       // heading in help and man page
  std::string_view help = {};        // one or two sentences, no full stop at the end
  Completion completion = Completion::kNothing;
  std::span<const std::string_view> choices = {};  // accepted values, if they can be listed
  bool repeatable = false;

  constexpr bool is_flag() const { return value_name.empty(); }
};

struct Example {
  std::string_view command_line = {};
  std::string_view meaning = {};
};

struct CommandSpec {
  std::string_view name = {};
  std::string_view synopsis = {};  // after "bulkhead NAME"
  std::string_view summary = {};   // one line, lower case, no full stop
  std::string_view description = {};
  bool takes_module = false;
  bool takes_process = false;
  std::span<const std::string_view> actions = {};  // its operand is one of these words
  bool takes_arguments = false;                    // words after "--"
  std::span<const OptionSpec> options = {};
  std::span<const Example> examples = {};

  constexpr bool takes_operand() const { return takes_module || takes_process || !actions.empty(); }
};

// NOLINTEND(readability-redundant-member-init)

struct ExitStatusSpec {
  std::string_view status;
  std::string_view meaning;
};

struct VariableSpec {
  std::string_view name;
  std::string_view meaning;
};

std::span<const CommandSpec> Commands();
const CommandSpec* FindCommand(std::string_view name);  // nullptr if there is none
const OptionSpec* FindOption(const CommandSpec& command,
                             std::string_view name);  // long or short name

std::span<const ExitStatusSpec> ExitStatuses();
std::span<const VariableSpec> EnvironmentVariables();

}  // namespace bulkhead::cli
