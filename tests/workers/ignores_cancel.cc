// Runs for ever and never looks at its channel, with a partial output. Outcome: forced-containment
// after the grace, as for a guest in an endless atomic wait (S7, S8, N16, S13, S14).
#include "support/worker_end.h"

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  if (worker.output().valid()) {
    bulkhead::test::WriteFully(worker.output(), "partial output");
  }
  bulkhead::test::HangForever();
}
