// Reports Completed and does not exit. Outcome: worker-lingered after five seconds, nothing
// published (N9).
#include "support/worker_end.h"

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  if (worker.output().valid()) {
    bulkhead::test::WriteFully(worker.output(), "must not be published");
  }
  worker.Send(bulkhead::test::Completed());
  bulkhead::test::HangForever();
}
