// Allocates and touches memory without end (at most 4 GiB), then says whether it got it. Outcome:
// not worker-completed; the memory it gets is bounded by the run's limits (N14).
#include <sys/mman.h>

#include <cstring>

#include "support/worker_end.h"

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  constexpr std::size_t kStep = 16U << 20;
  for (std::size_t total = 0; total < (4ULL << 30); total += kStep) {
    void* memory = mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      bulkhead::test::WriteFully(bulkhead::BorrowedFd(2),
                                 "got " + std::to_string(total >> 20) + " MiB\n");
      return 9;
    }
    std::memset(memory, 1, kStep);
  }
  worker.Send(bulkhead::test::Completed());
  return 0;
}
