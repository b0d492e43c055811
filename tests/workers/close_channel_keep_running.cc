// Closes its channel and keeps running. Outcome: worker-protocol after about one second (N6, G20e).
#include "support/worker_end.h"

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  worker.CloseChannel();
  bulkhead::test::HangForever();
}
