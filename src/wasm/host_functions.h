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
  std::uint32_t exit_code = 0;  // of kExit
  // The guest's exported memory, found at the first call that asks; unused with a shared memory.
  std::optional<wasmtime_memory_t> memory;
};

// For one host call. Empty if the guest has no memory that can be found: every address is outside.
wasi::GuestMemory MemoryOf(wasmtime_caller_t* caller, HostContext& context);
// A new thread of the guest: its identity, or -1.
std::int32_t SpawnThread(HostContext& context, std::int32_t argument) noexcept;

// Binds the module's imports; what it imports as shared memory is made here, no larger than the
// program's limit. kModuleRefused with reason "link-error" if the module wants something else, or
// lacks an entry point; kResourceExhausted if the memory is not to be had.
Status LinkHostFunctions(GuestProgram& program);

inline constexpr std::string_view kEntryPoint = "_start";
inline constexpr std::string_view kThreadEntryPoint = "wasi_thread_start";

}  // namespace bulkhead::wasm
