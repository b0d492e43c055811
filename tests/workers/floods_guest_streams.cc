// Writes without end to guest stdout and stderr until it is stopped or its reader is gone. Outcome:
// what stopped it.
#include <csignal>

#include "support/worker_end.h"

int main() {
  signal(SIGPIPE, SIG_IGN);
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  const std::string line(1023, 'f');
  for (;;) {
    if (worker.guest_stdout().valid()) {
      bulkhead::test::WriteFully(worker.guest_stdout(), line + "\n");
    }
    if (worker.guest_stderr().valid()) {
      bulkhead::test::WriteFully(worker.guest_stderr(), line + "\n");
    }
  }
}
