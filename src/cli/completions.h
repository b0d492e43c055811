// Completion scripts, from the option table. Pure.
#pragma once

#include <string>

namespace bulkhead::cli {

std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace bulkhead::cli
