// The real worker, which stops itself when a sketch's output is written and its commit is not yet
// complete. Outcome: whatever the parent does then; the destination is as before.
#include <csignal>

#include "wasm/guest.h"

int main() {
  bulkhead::wasm::TestHooks hooks;
  hooks.commit.before_complete = [] {
    raise(SIGSTOP);
    return 0;
  };
  bulkhead::wasm::WasmWorkerMain(std::move(hooks));
}
