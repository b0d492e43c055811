// WASI for the engine: makes each function of wasi::Functions() callable from a guest and obeys
// what it answers.
#pragma once

#include <bulkhead/result.h>

#include <optional>

#include "wasi/wasi.h"
#include "wasm/handles.h"

namespace bulkhead::wasm {

// What host calls know about their guest; the data of its store. One guest thread.
struct HostContext {
  wasi::Wasi* wasi = nullptr;
  // The answer that made a call unwind the guest; kContinue if none did.
  wasi::Control unwound_by = wasi::Control::kContinue;
  // The guest's exported memory, found at the first call that asks.
  std::optional<wasmtime_memory_t> memory{};
};

// Binds the module's imports. kModuleRefused with reason "link-error" if it wants something else,
// or has no function _start without parameters and results.
Result<InstancePre> LinkHostFunctions(wasm_engine_t* engine, const wasmtime_module_t* module);

inline constexpr std::string_view kEntryPoint = "_start";

}  // namespace bulkhead::wasm
