#include "wasm/engine.h"

#include "base/check.h"
#include "worker/run_handler.h"

namespace bulkhead::wasm {
namespace {

// What has to lie between a memory's end and whatever comes next, so that small offsets beyond the
// checked address fault: the engine's own choice where it checks bounds.
constexpr std::uint64_t kCheckedGuardBytes = 64U << 10;

// The engine's own preview of things to come is off by default; these are on.
void LeaveOnlySketchFeatures(wasm_config_t* config) {
  wasmtime_config_wasm_simd_set(config, false);
  wasmtime_config_wasm_relaxed_simd_set(config, false);
  wasmtime_config_wasm_tail_call_set(config, false);
  wasmtime_config_wasm_multi_memory_set(config, false);
  wasmtime_config_wasm_function_references_set(config, false);
  wasmtime_config_wasm_gc_set(config, false);
  wasmtime_config_wasm_exceptions_set(config, false);
}

Config MakeConfig(const EngineSettings& settings, MemoryBudget& budget) {
  Config config(wasm_config_new());
  wasm_config_t* const c = config.get();
  wasmtime_config_strategy_set(c, WASMTIME_STRATEGY_CRANELIFT);
  wasmtime_config_epoch_interruption_set(c, settings.interruptible);
  wasmtime_config_consume_fuel_set(c, settings.metered);
  wasmtime_config_max_wasm_stack_set(c, settings.stack_bytes);
  // The engine insists on this relation even where nothing is asynchronous.
  wasmtime_config_async_stack_size_set(c, settings.stack_bytes + kHostStackBytes);
  wasmtime_config_parallel_compilation_set(c, settings.parallel_compile);
  // Preview 1 addresses are 32 bits wide.
  wasmtime_config_wasm_memory64_set(c, false);
  wasmtime_config_shared_memory_set(c, settings.shared_memory);
  if (settings.sketch_features_only) {
    LeaveOnlySketchFeatures(c);
  }
  // Nobody unwinds through the guest's frames: traps and backtraces do not need the tables.
  wasmtime_config_native_unwind_info_set(c, false);
  wasmtime_config_memory_init_cow_set(c, settings.data_images);
  if (settings.scarce_address_space) {
    wasmtime_config_memory_reservation_set(c, budget.bytes_max());
    wasmtime_config_memory_guard_size_set(c, kCheckedGuardBytes);
  }
  wasmtime_memory_creator_t creator = MemoryCreator(budget);
  wasmtime_config_host_memory_creator_set(c, &creator);
  return config;
}

}  // namespace

Engine::Engine(const EngineSettings& settings, MemoryBudget& budget)
    : engine_(wasm_engine_new_with_config(MakeConfig(settings, budget).release())) {
  BH_CHECK(engine_ != nullptr);
}

Result<Module> Engine::Compile(std::span<const std::uint8_t> bytes) const {
  wasmtime_module_t* module = nullptr;
  if (const ErrorHandle error{
          wasmtime_module_new(engine_.get(), bytes.data(), bytes.size(), &module)}) {
    return Fail(ErrorCode::kModuleRefused, MessageOf(error.get()), 0, "invalid-module");
  }
  return Module(module);
}

Result<Module> Engine::Load(std::span<const std::uint8_t> code) const {
  wasmtime_module_t* module = nullptr;
  // Bytes, not a file: the engine would map that executable, which no worker may.
  if (const ErrorHandle error{
          wasmtime_module_deserialize(engine_.get(), code.data(), code.size(), &module)}) {
    return Fail(ErrorCode::kUnsupported, MessageOf(error.get()));
  }
  return Module(module);
}

std::string MessageOf(const wasmtime_error_t* error) {
  ByteVector message;
  wasmtime_error_message(error, message.get());
  return worker::WireText(message.view());
}

}  // namespace bulkhead::wasm
