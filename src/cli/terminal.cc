#include "cli/terminal.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace bulkhead::cli {
namespace {

std::string_view Variable(const char* name) {
  // Read while nothing writes the environment.
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

Terminal TerminalOf(BorrowedFd fd) {
  Terminal terminal;
  terminal.live = isatty(fd.get()) == 1 && Variable("TERM") != "dumb" && !Variable("TERM").empty();
  const std::string_view forced = Variable("CLICOLOR_FORCE");
  terminal.colours = terminal.live || (!forced.empty() && forced != "0");
  if (!Variable("NO_COLOR").empty()) {
    terminal.colours = false;
  }
  return terminal;
}

std::size_t ColumnsOf(BorrowedFd fd) {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  if (ioctl(fd.get(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kUsual;
  }
  return size.ws_col;
}

std::string Coloured(std::string_view text, Colour colour, bool colours) {
  if (!colours) {
    return std::string(text);
  }
  int code = 0;  // of ECMA-48 SGR
  switch (colour) {
    case Colour::kGreen:
      code = 32;
      break;
    case Colour::kRed:
      code = 31;
      break;
    case Colour::kYellow:
      code = 33;
      break;
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace bulkhead::cli
