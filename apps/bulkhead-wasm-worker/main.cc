// Runs one untrusted WebAssembly module for the parent on descriptor 3; see
// src/worker/worker_main.h.
#include "wasm/guest.h"

int main() {
  bulkhead::wasm::WasmWorkerMain();
}
