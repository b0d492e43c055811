// From a module to its code, and from code to a module. One place says what the code depends on, so
// that a worker that compiles and one that runs cannot disagree.
#pragma once

#include "wasm/engine.h"
#include "worker/run_handler.h"

namespace bulkhead::wasm {

// Of a run as much as of compiling for it. `scarce_address_space`: the process lives under somebody
// else's `ulimit -v`.
EngineSettings SettingsOf(const worker::RunRequest& request, bool scarce_address_space);

// Mode compile: the code goes into the output descriptor, nothing of the module is instantiated.
wire::Terminal CompileOnly(const worker::RunRequest& request, bool scarce_address_space);

}  // namespace bulkhead::wasm
