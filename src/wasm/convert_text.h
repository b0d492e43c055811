// WebAssembly text to binary, in the worker because the text is as untrusted as any module. Runs
// nothing.
#pragma once

#include "wire/messages.h"
#include "worker/run_handler.h"

namespace bulkhead::wasm {

// Writes the binary to the run's output descriptor. ModuleRefused with reason "invalid-text" says
// where the text is wrong; LimitReached if the binary is larger than the run's output may be.
wire::Terminal ConvertText(const worker::RunRequest& request);

}  // namespace bulkhead::wasm
