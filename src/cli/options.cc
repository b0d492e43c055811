#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "cli/suggest.h"
#include "cli/units.h"

namespace bulkhead::cli {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::size_t kShownBytesMax = 200;  // of a bad word in a message

tl::unexpected<Error> Usage(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string Shown(std::string_view word) {
  return Quoted(CutUtf8(word, kShownBytesMax));
}

std::string DidYouMean(std::string_view nearest) {
  return nearest.empty() ? std::string() : fmt::format("; did you mean {}?", nearest);
}

// What CLI11 would report in its own words, or take the next word for: a value option without its
// value, a flag with one.
Status CheckWords(const CommandSpec& command, Words words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals =
        words[i].starts_with("--") ? words[i].find('=') : std::string_view::npos;
    const OptionSpec* option = FindOption(command, words[i].substr(0, equals));
    if (option == nullptr) {
      continue;
    }
    const bool has_equals = equals != std::string_view::npos;
    if (option->is_flag() && has_equals) {
      return Usage(fmt::format("{} takes no value", option->name));
    }
    const bool missing = has_equals ? equals + 1 == words[i].size() : i + 1 == words.size();
    if (!option->is_flag() && missing) {
      return Usage(
          fmt::format("{} needs a value: {} {}", option->name, option->name, option->value_name));
    }
    if (!option->is_flag() && !has_equals) {
      ++i;  // its value, whatever that looks like
    }
  }
  return {};
}

std::string UnknownOption(const CommandSpec& command, std::string_view word) {
  std::vector<std::string_view> names;
  for (const OptionSpec& option : command.options) {
    names.push_back(option.name);
  }
  const std::string_view name = word.substr(0, word.find('='));
  return fmt::format("unknown option {} of {}{}", Shown(name), command.name,
                     DidYouMean(Nearest(name, names)));
}

Status CheckLeftOver(const CommandSpec& command, const std::vector<std::string>& left_over) {
  for (const std::string& word : left_over) {
    if (word.size() > 1 && word.front() == '-') {
      return Usage(UnknownOption(command, word));
    }
  }
  if (left_over.empty()) {
    return {};
  }
  return Usage(fmt::format("unexpected argument {}{}", Shown(left_over.front()),
                           command.takes_arguments ? "; arguments of the guest go after --" : ""));
}

Result<RawOptions> ParseWithCli11(const CommandSpec& command, Words words) {
  CLI::App app;
  app.set_help_flag();  // ours, so that --help is made from the table
  app.allow_extras();   // sorted out below, with suggestions
  std::vector<std::pair<const OptionSpec*, CLI::Option*>> options;
  for (const OptionSpec& spec : command.options) {
    std::string names(spec.name);
    if (!spec.short_name.empty()) {
      names = fmt::format("{},{}", spec.short_name, spec.name);
    }
    CLI::Option* option =
        spec.is_flag()
            ? app.add_flag(names)
            : app.add_option(names, CLI::callback_t([](const CLI::results_t&) { return true; }));
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    options.emplace_back(&spec, option);
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // the order CLI11 consumes
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return Usage(fmt::format("{}: {}", command.name, Printable(error.what())));
  }
  RawOptions raw;
  for (const auto& [spec, option] : options) {
    if (option->count() == 0) {
      continue;
    }
    if (!spec->is_flag() && !spec->repeatable && option->count() > 1) {
      return Usage(fmt::format("{} is given more than once", spec->name));
    }
    raw.values[std::string(spec->name)] = option->results();
  }
  std::vector<std::string> left_over = app.remaining();
  const auto is_operand = [](const std::string& word) {
    return word == "-" || !word.starts_with('-');
  };
  if (const auto operand = std::find_if(left_over.begin(), left_over.end(), is_operand);
      command.takes_operand() && operand != left_over.end()) {
    raw.operands.push_back(std::move(*operand));
    left_over.erase(operand);
  }
  if (!raw.Has("--help")) {
    BH_TRY(CheckLeftOver(command, left_over));
  }
  return raw;
}

Result<RawOptions> ParseCommandWords(const CommandSpec& command, Words words) {
  const auto separator = std::find(words.begin(), words.end(), "--");
  const Words own(words.begin(), separator);
  BH_TRY(CheckWords(command, own));
  RawOptions raw = BH_TRY(ParseWithCli11(command, own));
  if (separator == words.end()) {
    return raw;
  }
  raw.arguments.assign(separator + 1, words.end());
  if (!command.takes_arguments && !raw.arguments.empty()) {
    return Usage(fmt::format("{} takes no arguments after --", command.name));
  }
  return raw;
}

Result<const CommandSpec*> CommandNamed(std::string_view word) {
  if (const CommandSpec* command = FindCommand(word)) {
    return command;
  }
  std::vector<std::string_view> names;
  for (const CommandSpec& command : Commands()) {
    names.push_back(command.name);
  }
  return Usage(fmt::format("unknown {} {}{}", word.starts_with('-') ? "option" : "command",
                           Shown(word), DidYouMean(Nearest(word, names))));
}

Result<Command> ParseHelp(Words words) {
  if (words.empty()) {
    return HelpOptions{};
  }
  if (words.size() > 1) {
    return Usage("help takes one command");
  }
  return HelpOptions{BH_TRY(CommandNamed(words[0]))};
}

Status CheckAction(const CommandSpec& command, const RawOptions& raw) {
  if (raw.operands.empty()) {
    return Usage(
        fmt::format("{} needs one of: {}", command.name, fmt::join(command.actions, ", ")));
  }
  const std::string& word = raw.operands.front();
  if (std::find(command.actions.begin(), command.actions.end(), word) == command.actions.end()) {
    return Usage(fmt::format("{}: {} is none of: {}", command.name, Shown(word),
                             fmt::join(command.actions, ", ")));
  }
  return {};
}

Result<CacheOptions> MakeCacheOptions(const RawOptions& raw) {
  CacheOptions options;
  const std::string& action = raw.operands.front();
  options.action = action == "stat"    ? CacheOptions::Action::kStat
                   : action == "prune" ? CacheOptions::Action::kPrune
                                       : CacheOptions::Action::kVerify;
  options.cache = BH_TRY(MakeCacheChoice(raw));
  if (options.cache.kind == CacheChoice::Kind::kOff) {
    return Usage("--cache: there is nothing to look after in 'off'; name a directory");
  }
  if (const std::string* size = raw.Value("--size")) {
    if (options.action != CacheOptions::Action::kPrune) {
      return Usage("--size has no meaning but for prune");
    }
    options.bytes_max = BH_TRY_CONTEXT(ParseSize(*size), "--size");
  }
  options.json = raw.Has("--json");
  return options;
}

Result<pid_t> ParsePid(const std::string& word) {
  pid_t pid = 0;
  const char* const end = word.c_str() + word.size();
  const auto parsed = std::from_chars(word.c_str(), end, pid);
  if (parsed.ec != std::errc() || parsed.ptr != end || pid <= 0) {
    return Usage(fmt::format("{} is no process id", Shown(word)));
  }
  return pid;
}

Result<Command> MakeCommand(const CommandSpec& command, const RawOptions& raw) {
  if (raw.Has("--help")) {
    return HelpOptions{&command};
  }
  if (command.takes_module && raw.operands.empty()) {
    return Usage(fmt::format("{} needs a module: bulkhead {} {}", command.name, command.name,
                             command.synopsis));
  }
  if (!command.actions.empty()) {
    BH_TRY(CheckAction(command, raw));
  }
  if (command.takes_process && raw.operands.empty()) {
    return Usage(fmt::format("{} needs a process: bulkhead {} {}", command.name, command.name,
                             command.synopsis));
  }
  const bool json = raw.Has("--json");
  if (command.name == "run") {
    return BH_TRY(MakeRunOptions(raw));
  }
  if (command.name == "inspect") {
    return InspectOptions{raw.operands.front(), json};
  }
  if (command.name == "guest-pack") {
    const std::string* const output = raw.Value("--output");
    if (output == nullptr) {
      return Usage("guest-pack needs --output FILE");
    }
    return GuestPackOptions{raw.operands.front(), *output};
  }
  if (command.name == "cache") {
    return BH_TRY(MakeCacheOptions(raw));
  }
  if (command.name == "doctor") {
    return DoctorOptions{json};
  }
  if (command.name == "audit") {
    return AuditOptions{BH_TRY(ParsePid(raw.operands.front())), json};
  }
  return VersionOptions{json};
}

}  // namespace

Result<Command> ParseOptions(Words words) {
  if (words.empty()) {
    return Usage("no command given; bulkhead help lists the commands");
  }
  const std::string_view first = words[0];
  const Words rest = words.subspan(1);
  if (first == "help" || first == "--help" || first == "-h") {
    return ParseHelp(rest);
  }
  if (first == "--version" && rest.empty()) {
    return VersionOptions{};
  }
  if (first == "--generate" && rest.size() == 1) {
    return GenerateOptions{std::string(rest[0])};
  }
  const CommandSpec* command = BH_TRY(CommandNamed(first));
  return MakeCommand(*command, BH_TRY(ParseCommandWords(*command, rest)));
}

}  // namespace bulkhead::cli
