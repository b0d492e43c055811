// Help, man page and completions name everything in the table; what shells and man make of them is
// tested end to end.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/completions.h"
#include "cli/help_text.h"
#include "cli/man_page.h"
#include "cli/option_table.h"

namespace bulkhead::cli {
namespace {

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST(GeneratedText, EveryOptionIsEverywhere) {
  const std::string man = Replaced(ManPage("1.2.3"), "\\-", "-");
  const std::string bash = BashCompletion();
  const std::string zsh = ZshCompletion();
  const std::string fish = FishCompletion();
  for (const CommandSpec& command : Commands()) {
    const std::string help = CommandHelp(command);
    EXPECT_TRUE(Contains(OverviewHelp(), command.name));
    EXPECT_TRUE(Contains(man, "bulkhead " + std::string(command.name)));
    EXPECT_FALSE(command.examples.empty()) << command.name;
    for (const Example& example : command.examples) {
      EXPECT_TRUE(Contains(help, example.command_line));
      EXPECT_TRUE(Contains(man, example.command_line));
    }
    for (const OptionSpec& option : command.options) {
      for (const std::string& text : {help, man, bash, zsh}) {
        EXPECT_TRUE(Contains(text, option.name)) << option.name;
      }
      EXPECT_TRUE(Contains(fish, "-l " + std::string(option.name.substr(2)))) << option.name;
      EXPECT_FALSE(option.help.ends_with('.')) << option.name;
    }
  }
  for (const ExitStatusSpec& row : ExitStatuses()) {
    EXPECT_TRUE(Contains(CommandHelp(*FindCommand("run")), row.meaning.substr(0, 20)));
    EXPECT_TRUE(Contains(man, row.status));
  }
}

TEST(GeneratedText, HelpFitsATerminal) {
  constexpr std::size_t kColumns = 80;
  for (const CommandSpec& command : Commands()) {
    const std::string help = CommandHelp(command);
    for (std::size_t begin = 0; begin < help.size();) {
      const std::size_t end = std::min(help.find('\n', begin), help.size());
      const std::string line = help.substr(begin, end - begin);
      EXPECT_TRUE(line.size() <= kColumns || Contains(line, "bulkhead run wc.wasm")) << line;
      begin = end + 1;
    }
  }
}

TEST(GeneratedText, ManPageIsTheSameEveryTime) {
  EXPECT_EQ(ManPage("1.2.3"), ManPage("1.2.3"));
  EXPECT_TRUE(ManPage("1.2.3").starts_with(".TH BULKHEAD 1 \"\" \"Bulkhead 1.2.3\""));
}

}  // namespace
}  // namespace bulkhead::cli
