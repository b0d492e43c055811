#include "wasm/host_functions.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <new>

#include "wasi/errno.h"
#include "wasm/engine.h"

namespace bulkhead::wasm {
namespace {

// More than any function of preview 1 has parameters (path_open: 9).
constexpr std::size_t kSlotsMax = 16;

constexpr std::string_view kMemoryExport = "memory";

wasi::GuestMemory MemoryOf(wasmtime_caller_t* caller, HostContext& context) {
  wasmtime_context_t* const store = wasmtime_caller_context(caller);
  if (!context.memory) {
    wasmtime_extern_t item;
    if (!wasmtime_caller_export_get(caller, kMemoryExport.data(), kMemoryExport.size(), &item) ||
        item.kind != WASMTIME_EXTERN_MEMORY) {
      return {};  // every address is outside
    }
    context.memory = item.of.memory;
  }
  return {wasmtime_memory_data(store, &*context.memory),
          wasmtime_memory_data_size(store, &*context.memory)};
}

// The engine's callback for every function of WASI; `function` says which. Nothing may be thrown
// through the guest's frames: what is out of memory tells the guest so, anything else would be a
// bug and ends the process.
wasm_trap_t* CallHostFunction(void* function, wasmtime_caller_t* caller, wasmtime_val_raw_t* values,
                              std::size_t count) noexcept {
  const auto& called = *static_cast<const wasi::Function*>(function);
  auto& context =
      *static_cast<HostContext*>(wasmtime_context_get_data(wasmtime_caller_context(caller)));
  std::array<wasi::Value, kSlotsMax> slots{};
  for (std::size_t i = 0; i < count; ++i) {
    slots[i].i64 = values[i].i64;
  }
  wasi::Control control = wasi::Control::kContinue;
  try {
    control = called.call(*context.wasi, MemoryOf(caller, context),
                          std::span(slots).first(std::max<std::size_t>(count, 1)));
  } catch (const std::bad_alloc&) {
    slots[0].i32 = static_cast<std::int32_t>(wasi::Errno::kNomem);
  }
  if (control == wasi::Control::kContinue) {
    if (count > 0) {
      values[0].i64 = slots[0].i64;
    }
    return nullptr;
  }
  context.unwound_by = control;
  constexpr std::string_view kUnwinding = "the guest is being ended";
  return wasmtime_trap_new(kUnwinding.data(), kUnwinding.size());
}

wasm_valtype_t* ValueType(char letter) {
  return letter == 'I' ? wasm_valtype_new_i64() : wasm_valtype_new_i32();
}

wasm_valtype_vec_t ValueTypes(std::string_view letters) {
  wasm_valtype_vec_t types;
  wasm_valtype_vec_new_uninitialized(&types, letters.size());
  std::transform(letters.begin(), letters.end(), types.data, &ValueType);
  return types;
}

// "iiI:i" as a type of the engine.
FunctionType ParseSignature(std::string_view signature) {
  const std::size_t colon = signature.find(':');
  wasm_valtype_vec_t parameters = ValueTypes(signature.substr(0, colon));
  wasm_valtype_vec_t results = ValueTypes(signature.substr(colon + 1));
  return FunctionType(wasm_functype_new(&parameters, &results));
}

const wasi::Function* FindFunction(std::string_view name) {
  const std::span<const wasi::Function> functions = wasi::Functions();
  const auto found =
      std::lower_bound(functions.begin(), functions.end(), name,
                       [](const wasi::Function& f, std::string_view n) { return f.name < n; });
  return found != functions.end() && found->name == name ? &*found : nullptr;
}

tl::unexpected<Error> LinkError(std::string message) {
  return Fail(ErrorCode::kModuleRefused, std::move(message), 0, "link-error");
}

Status Define(wasmtime_linker_t* linker, const wasi::Function& function) {
  const FunctionType type = ParseSignature(function.signature);
  const ErrorHandle error(wasmtime_linker_define_func_unchecked(
      linker, wasi::kImportModule.data(), wasi::kImportModule.size(), function.name.data(),
      function.name.size(), type.get(), &CallHostFunction,
      const_cast<wasi::Function*>(
          &function),  // the callback's data is not const in the engine's interface
      nullptr));
  return error == nullptr ? Status() : LinkError(MessageOf(error.get()));
}

// Only what the module imports: defining all 46 functions costs more than running a small guest.
Status DefineImports(wasmtime_linker_t* linker, const wasmtime_module_t* module) {
  // A module may import a function twice.
  wasmtime_linker_allow_shadowing(linker, true);
  ImportTypes imports;
  wasmtime_module_imports(module, imports.get());
  for (const wasm_importtype_t* import : imports) {
    const wasi::Function* const function = FindFunction(ViewOf(wasm_importtype_name(import)));
    if (function != nullptr && ViewOf(wasm_importtype_module(import)) == wasi::kImportModule) {
      BH_TRY(Define(linker, *function));
    }
  }
  return {};
}

bool IsEntryPoint(const wasm_exporttype_t* item) {
  if (ViewOf(wasm_exporttype_name(item)) != kEntryPoint) {
    return false;
  }
  const wasm_functype_t* const type = wasm_externtype_as_functype_const(wasm_exporttype_type(item));
  return type != nullptr && wasm_functype_params(type)->size == 0 &&
         wasm_functype_results(type)->size == 0;
}

}  // namespace

Result<InstancePre> LinkHostFunctions(wasm_engine_t* engine, const wasmtime_module_t* module) {
  ExportTypes exports;
  wasmtime_module_exports(module, exports.get());
  if (std::none_of(exports.begin(), exports.end(), &IsEntryPoint)) {
    return LinkError(fmt::format("the module exports no function {} without parameters and results",
                                 kEntryPoint));
  }
  const Linker linker(wasmtime_linker_new(engine));
  BH_TRY(DefineImports(linker.get(), module));
  wasmtime_instance_pre_t* linked = nullptr;
  if (const ErrorHandle error{wasmtime_linker_instantiate_pre(linker.get(), module, &linked)}) {
    return LinkError(MessageOf(error.get()));
  }
  return InstancePre(linked);
}

}  // namespace bulkhead::wasm
