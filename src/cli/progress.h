// The live line of a run that takes over a second: stage, time, memory. It lives in the terminal
// row below the cursor, so that what a guest prints to the same terminal stays whole.
#pragma once

#include <bulkhead/run.h>

#include <string_view>

#include "base/unique_fd.h"
#include "cli/event_relay.h"

namespace bulkhead::cli {

// Waits for the end of the run. `terminal`: where the live line is drawn; invalid: nothing is drawn
// and nothing wakes up in between.
RunReport WaitForRun(RunHandle& run, const EventRelay& relay, BorrowedFd terminal);

// A line in the row below the cursor, cut to the terminal's width, in place of the last such line.
void DrawBelow(BorrowedFd terminal, std::string_view text);
void EraseBelow(BorrowedFd terminal);

}  // namespace bulkhead::cli
