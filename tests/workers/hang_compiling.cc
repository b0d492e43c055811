// Confirms the module and never starts the guest, deaf to Cancel. Outcome: forced-containment after
// the grace.
#include "support/worker_end.h"

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.Begin();
  worker.AwaitExecute();
  worker.SendReady();
  bulkhead::test::HangForever();
}
