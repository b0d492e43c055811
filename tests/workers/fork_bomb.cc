// Every process starts others as long as it can, at most 300 in all; then the first writes to the
// guest's stdout how many there were, itself included, and completes. Outcome: worker-completed,
// with no more of them than a cgroup allows, and none alive.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <string>

#include "support/worker_end.h"

namespace {

constexpr int kProcessesMax = 300;

struct Shared {
  std::atomic<int> started{1};
  std::atomic<bool> full{false};
};

void Explode(Shared& shared) {
  while (!shared.full) {
    const int before = shared.started.fetch_add(1);
    const pid_t child = before < kProcessesMax ? fork() : -1;
    if (child < 0) {
      shared.started.fetch_sub(1);
      shared.full = true;
    }
  }
}

}  // namespace

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    bulkhead::test::Die("mmap failed");
  }
  Shared& shared = *new (memory) Shared;
  const pid_t self = getpid();
  Explode(shared);
  if (getpid() != self) {
    bulkhead::test::HangForever();
  }
  bulkhead::test::WriteFully(worker.guest_stdout(), std::to_string(shared.started));
  worker.Send(bulkhead::test::Completed());
  return 0;
}
