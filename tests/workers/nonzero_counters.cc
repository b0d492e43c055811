// Reports Completed while it still holds something, for each kind of thing. Outcome:
// worker-protocol (N11).
#include "support/worker_end.h"

int main(int /*argc*/, char** argv) {
  const std::string_view variant = bulkhead::test::VariantName(argv[0]);
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  bulkhead::wire::Terminal terminal = bulkhead::test::Completed();
  terminal.counters.active_roots = variant == "counter_roots" ? 1 : 0;
  terminal.counters.live_stores = variant == "counter_stores" ? 1 : 0;
  terminal.counters.live_instances = variant == "counter_instances" ? 1 : 0;
  terminal.counters.epoch_registrations = variant == "counter_registrations" ? 1 : 0;
  terminal.counters.live_threads = variant == "counter_threads" ? 1 : 0;
  worker.Send(terminal);
  bulkhead::test::HangForever();
}
