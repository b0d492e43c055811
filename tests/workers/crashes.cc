// Crashes while the guest runs, after a word on stderr. Outcome: worker-unexpected-exit with the
// signal (G06).
#include <csignal>
#include <cstdlib>

#include "support/worker_end.h"

using bulkhead::test::VariantName;

namespace {

// Deep enough for any stack; the bound only tells the compiler that it ends.
constexpr int kDepthMax = 1 << 30;

int Recurse(volatile int* depth) {
  if (*depth >= kDepthMax) {
    return 0;
  }
  volatile char frame[4096];
  frame[0] = static_cast<char>(*depth);
  *depth = *depth + 1;
  return Recurse(depth) + frame[0];
}

}  // namespace

int main(int /*argc*/, char** argv) {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  bulkhead::test::WriteFully(bulkhead::BorrowedFd(2), "last words\n");
  const std::string_view variant = VariantName(argv[0]);
  if (variant == "crash_abort") {
    std::abort();
  }
  if (variant == "crash_segv") {
    raise(SIGSEGV);
  }
  if (variant == "crash_recurse") {
    volatile int depth = 0;
    return Recurse(&depth);
  }
  bulkhead::test::Die("unknown variant");
}
