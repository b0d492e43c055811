// What all threads of one run share: compiled code, memory, host functions' state, limits. Made
// before the guest begins and kept until the process ends, because a thread that waits for ever can
// be neither stopped nor outlived.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sketch/hub.h"
#include "wasi/wasi.h"
#include "wasm/engine.h"
#include "wasm/handles.h"
#include "wasm/linear_memory.h"
#include "wasm/thread_group.h"
#include "wasm/trace_log.h"
#include "worker/run_handler.h"

namespace bulkhead::wasm {

struct GuestProgram {
  wire::Execute execute;  // the limits; streams and names have been taken out
  worker::RunControl* control = nullptr;
  std::optional<MemoryBudget> budget;
  std::optional<Engine> engine;
  Module module;
  SharedMemory shared_memory;  // null unless the module imports one
  InstancePre linked;
  std::unique_ptr<wasi::Wasi> wasi;    // not in the sketch profile
  std::unique_ptr<sketch::Hub> hub;    // in the sketch profile only
  std::optional<TraceLog> trace;       // in the workers of tests only
  std::optional<ThreadGroup> threads;  // nothing in the profile without threads

  bool sketch() const { return execute.profile == wire::GuestProfile::kSketch; }

  bool metered() const { return execute.fuel != 0; }
};

}  // namespace bulkhead::wasm
