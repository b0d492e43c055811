// Reports Completed, adds garbage nobody may read, exits 0. Outcome: worker-completed (U11).
#include "support/worker_end.h"

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  worker.SendBytes(worker.Frame(bulkhead::test::Completed()) + std::string(1000, 'x'));
  return 0;
}
