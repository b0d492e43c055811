// Reports Completed and then ends badly. Outcome: worker-unexpected-exit (N7).
#include <csignal>

#include "support/worker_end.h"

int main(int /*argc*/, char** argv) {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  if (worker.output().valid()) {
    bulkhead::test::WriteFully(worker.output(), "must not be published");
  }
  worker.Send(bulkhead::test::Completed());
  if (bulkhead::test::VariantName(argv[0]) == "completed_then_segv") {
    raise(SIGSEGV);
  }
  return 3;
}
