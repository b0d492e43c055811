// The engine as Bulkhead uses it: one per worker process, made from fixed settings and the few
// below. Thread-safe.
#pragma once

#include <bulkhead/result.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "wasm/handles.h"
#include "wasm/linear_memory.h"

namespace bulkhead::wasm {

struct EngineSettings {
  std::size_t stack_bytes = 0;   // of the guest's own frames
  bool interruptible = true;     // code checks the epoch, so that Interrupt works
  bool metered = false;          // code counts fuel
  bool parallel_compile = true;  // on all processors; not worth its start for small modules
  bool shared_memory = false;    // one that all threads see
  // Nothing beyond the target features of the sketch contract.
  bool sketch_features_only = false;
  // Four gigabytes of address space for each memory are not to be had: reserve what it may grow to,
  // and have the code check bounds instead.
  bool scarce_address_space = false;
  // Compile data segments into one image per memory: much faster for modules with many. The engine
  // would map the image with memfd_create(2), which cannot be combined with memories of ours; where
  // that call is not implemented, as the lock-down's filter has it, it copies the image instead. So
  // this is for locked-down processes only.
  bool data_images = false;
};

// Modules below this compile faster on one thread.
inline constexpr std::uint64_t kParallelCompileBytesMin = 64U << 10;

// Room for host functions on the stack of a thread that runs a guest.
inline constexpr std::size_t kHostStackBytes = 1U << 20;

class Engine {
 public:
  // `budget` bounds the linear memories of all stores and has to outlive the engine.
  Engine(const EngineSettings& settings, MemoryBudget& budget);

  // Untrusted bytes to executable code. kModuleRefused with reason "invalid-module" and the
  // engine's sentence.
  Result<Module> Compile(std::span<const std::uint8_t> bytes) const;

  // What CompileOnly made with the same settings, on the same engine and processor; nothing else
  // may come here but from a trusted hand: the engine checks that it fits, not that it is harmless.
  // kUnsupported with the engine's sentence if it does not fit.
  Result<Module> Load(std::span<const std::uint8_t> code) const;

  // Stops every guest at its next epoch check. Never fails, never blocks.
  void Interrupt() const noexcept { wasmtime_engine_increment_epoch(engine_.get()); }

  wasm_engine_t* get() const { return engine_.get(); }

 private:
  EngineHandle engine_;
};

// What an engine call reports, on one line.
std::string MessageOf(const wasmtime_error_t* error);

}  // namespace bulkhead::wasm
