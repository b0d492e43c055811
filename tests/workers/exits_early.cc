// Ends without a report at the point its name says. Outcome: worker-unexpected-exit (N5).
#include <cstdlib>

#include "support/worker_end.h"

using bulkhead::test::VariantName;
using bulkhead::test::WorkerEnd;

int main(int /*argc*/, char** argv) {
  const std::string_view variant = VariantName(argv[0]);
  if (variant == "exit_at_once") {
    return 0;
  }
  WorkerEnd worker;
  worker.Begin();
  if (variant == "exit_after_hello") {
    return 0;
  }
  worker.AwaitExecute();
  if (variant == "exit_at_execute") {
    return 0;
  }
  worker.SendReady();
  if (variant == "exit_after_ready") {
    return 0;
  }
  worker.Send(bulkhead::wire::Started{1});
  if (variant == "exit_137_after_started") {
    return 137;
  }
  if (variant == "exit_after_started") {
    return 0;
  }
  bulkhead::test::Die("unknown variant");
}
