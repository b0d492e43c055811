// The host's functions for the engine: makes each function a guest may import callable from it, and
// obeys what it answers.
#pragma once

#include <bulkhead/result.h>

#include <optional>

#include "wasi/wasi.h"
#include "wasm/handles.h"

namespace bulkhead::wasm {

struct GuestProgram;

// What host calls know about their guest; the data of its store. One guest thread.
struct HostContext {
  GuestProgram* program = nullptr;
  std::uint32_t thread = 0;
  // The answer that made a call unwind the guest; kContinue if none did.
  wasi::Control unwound_by = wasi::Control::kContinue;
  // The guest's exported memory, found at the first call that asks; unused with a shared memory.
  std::optional<wasmtime_memory_t> memory;
};

// Binds the module's imports; what it imports as shared memory is made here, no larger than the
// program's limit. kModuleRefused with reason "link-error" if the module wants something else, or
// lacks an entry point; kResourceExhausted if the memory is not to be had.
Status LinkHostFunctions(GuestProgram& program);

inline constexpr std::string_view kEntryPoint = "_start";
inline constexpr std::string_view kThreadEntryPoint = "wasi_thread_start";

}  // namespace bulkhead::wasm
