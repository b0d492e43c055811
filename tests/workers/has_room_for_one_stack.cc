// The real worker on a system that has memory for the first thread's stack, if that is as large as
// a stack may be, and for all else, but not for another such stack. Outcome: that of the run.
#include <sys/resource.h>

#include <cstdlib>

#include "wasm/guest.h"

namespace {

constexpr rlim_t kStackBytes = 64U << 20;
// The second stack is missing these few.
constexpr rlim_t kBytesMax = 2 * kStackBytes - (4U << 20);

}  // namespace

int main() {
  const rlimit limit{kBytesMax, kBytesMax};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) {
    return EXIT_FAILURE;
  }
  bulkhead::wasm::WasmWorkerMain();
}
