// The command `bulkhead`. Everything is in src/cli.
#include <cstddef>
#include <span>

#include "cli/commands.h"

int main(int argc, char** argv) {
  return bulkhead::cli::Main(std::span<const char* const>(argv, static_cast<std::size_t>(argc)));
}
