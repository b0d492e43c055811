// The real worker, which records what a sketch calls and reports it as Trace. Outcome: that of the
// run.
#include "wasm/guest.h"

int main() {
  bulkhead::wasm::WasmWorkerMain({.commit = {}, .trace = true});
}
