// Answers Hello, takes the module, never confirms it. Outcome: forced-containment, without a Cancel
// (N4).
#include "support/worker_end.h"

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.Begin();
  worker.AwaitExecute();
  bulkhead::test::HangForever();
}
