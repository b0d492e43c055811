// Writes 8 MiB of odd bytes to its own stderr before it completes. Outcome: worker-completed, the
// tail kept and marked as cut (G03).
#include "support/worker_end.h"

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  const bulkhead::BorrowedFd own_stderr(2);
  const std::string line =
      "\x1B[31mred\xFF noise \xF0\x9F\x98\x80 that nobody should have to read in full\n";
  for (std::size_t written = 0; written < (8U << 20); written += line.size()) {
    bulkhead::test::WriteFully(own_stderr, line);
  }
  bulkhead::test::WriteFully(own_stderr, "the very last line\n");
  worker.Send(bulkhead::test::Completed());
  return 0;
}
