#include "wasm/compile.h"

#include "wasm/delivery.h"
#include "wasm/outcome.h"

namespace bulkhead::wasm {

EngineSettings SettingsOf(const worker::RunRequest& request, bool scarce_address_space) {
  const wire::Execute& execute = request.execute;
  return {.stack_bytes = execute.stack_bytes,
          .interruptible = execute.cooperative,
          .metered = execute.fuel != 0,
          .parallel_compile = execute.module_bytes >= kParallelCompileBytesMin,
          .shared_memory = execute.profile != wire::GuestProfile::kWasi,
          .sketch_features_only = execute.profile == wire::GuestProfile::kSketch,
          .scarce_address_space = scarce_address_space,
          .data_images = request.guest_phase.sandboxed()};
}

wire::Terminal CompileOnly(const worker::RunRequest& request, bool scarce_address_space) {
  MemoryBudget budget(request.execute.memory_bytes);
  const Engine engine(SettingsOf(request, scarce_address_space), budget);
  const Result<Module> module = engine.Compile(request.module);
  if (!module) {
    return Refused(module.error());
  }
  ByteVector code;
  if (const ErrorHandle error{wasmtime_module_serialize(module->get(), code.get())}) {
    return worker::MakeTerminal(wire::Terminal::Kind::kWorkerFailure, MessageOf(error.get()));
  }
  return Deliver(request, {"the compiled code", code.view(), wire::Terminal::Limit::kCompile});
}

}  // namespace bulkhead::wasm
