// Fills a memory file, which no resource limit counts, without end (at most 4 GiB; names ending in
// "32_mib": as much, and then waits for Cancel). Outcome: out-of-memory where a cgroup limits
// memory, or cancelled.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "support/worker_end.h"

int main(int /*argc*/, char** argv) {
  const bool little = bulkhead::test::VariantName(argv[0]).ends_with("32_mib");
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  const std::size_t bytes = little ? 32U << 20 : std::size_t{4} << 30;
  const bulkhead::UniqueFd file(memfd_create("eaten", MFD_CLOEXEC));
  const std::string some(1U << 20, 'x');
  for (std::size_t eaten = 0; eaten < bytes; eaten += some.size()) {
    bulkhead::test::WriteFully(file.borrow(), some);
  }
  if (little) {
    worker.AwaitCancel();
    worker.Send(bulkhead::test::OfKind(bulkhead::wire::Terminal::Kind::kCancelled));
    return 0;
  }
  worker.Send(bulkhead::test::Completed());
  return 0;
}
