#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

#include "base/clock.h"
#include "base/strings.h"
#include "base/wait_set.h"
#include "cli/terminal.h"
#include "cli/text_io.h"
#include "cli/units.h"

namespace bulkhead::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstLineAfter{1000};
constexpr milliseconds kRedrawAfter{200};  // smooth enough for seconds with one decimal

// Resident bytes of a process, 0 if it is gone.
std::uint64_t ResidentBytes(int pid) {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid));
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return statm ? resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

std::string LiveText(const EventRelay& relay, std::chrono::microseconds elapsed) {
  std::string text = fmt::format("{} {}", StageName(relay.stage()), FormatDuration(elapsed));
  if (const std::uint64_t bytes = relay.worker_pid() > 0 ? ResidentBytes(relay.worker_pid()) : 0) {
    text += fmt::format(" {}", FormatSize(bytes));
  }
  return text;
}

}  // namespace

// Index (scroll if needed) and up again: there is a row below now. Erase from the cursor on, save
// the cursor, go down, write, restore.
void DrawBelow(BorrowedFd terminal, std::string_view text) {
  const std::size_t columns = ColumnsOf(terminal);
  const std::string_view fitting = text.substr(0, columns > 1 ? columns - 1 : 0);
  static_cast<void>(WriteAll(terminal, fmt::format("\x1b"
                                                   "D\x1b[A\x1b[J\x1b"
                                                   "7\x1b[B\r{}\x1b"
                                                   "8",
                                                   fitting)));
}

void EraseBelow(BorrowedFd terminal) {
  static_cast<void>(WriteAll(terminal, "\x1b[J"));
}

RunReport WaitForRun(RunHandle& run, const EventRelay& relay, BorrowedFd terminal) {
  if (!terminal.valid()) {
    return run.Wait();
  }
  const MonotonicClock clock;
  const MonotonicTime start = clock.Now();
  MonotonicTime next = start + kFirstLineAfter;
  bool drawn = false;
  WaitSet waits;
  for (;;) {
    waits.Clear();
    waits.Add(BorrowedFd(run.poll_fd()), POLLIN, 0);
    const auto ready = waits.Wait(clock, Deadline::At(next));
    if (!ready || *ready) {
      break;
    }
    const MonotonicTime now = clock.Now();
    DrawBelow(terminal,
              LiveText(relay, std::chrono::duration_cast<std::chrono::microseconds>(now - start)));
    drawn = true;
    next = now + kRedrawAfter;
  }
  if (drawn) {
    EraseBelow(terminal);
  }
  return run.Wait();
}

}  // namespace bulkhead::cli
