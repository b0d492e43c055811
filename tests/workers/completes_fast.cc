// No sin: everything from Ready to Completed in one write, then gone. Outcome: worker-completed,
// however late the parent looks (N8).
#include "support/worker_end.h"

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.Begin();
  worker.AwaitExecute();
  worker.SendBytes(worker.Frame(bulkhead::wire::Ready{worker.execute().module_bytes}) +
                   worker.Frame(bulkhead::wire::Started{1}) +
                   worker.Frame(bulkhead::test::Completed()));
  return 0;
}
