// What standard error is: whether colours and a live line belong there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace bulkhead::cli {

struct Terminal {
  bool live = false;     // a terminal that understands cursor movement
  bool colours = false;  // NO_COLOR and CLICOLOR_FORCE considered
};

Terminal TerminalOf(BorrowedFd fd);

// Width in columns, 80 if the terminal does not say.
std::size_t ColumnsOf(BorrowedFd fd);

enum class Colour { kGreen, kRed, kYellow };

// `text` in a colour, or as it is when `colours` is false.
std::string Coloured(std::string_view text, Colour colour, bool colours);

}  // namespace bulkhead::cli
