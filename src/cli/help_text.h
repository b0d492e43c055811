// --help, from the option table. Pure.
#pragma once

#include <string>

#include "cli/option_table.h"

namespace bulkhead::cli {

std::string OverviewHelp();
std::string CommandHelp(const CommandSpec& command);

}  // namespace bulkhead::cli
