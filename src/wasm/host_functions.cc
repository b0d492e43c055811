#include "wasm/host_functions.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <new>

#include "wasi/errno.h"
#include "wasm/guest_program.h"
#include "wasm/link.h"
#include "wasm/sketch_functions.h"

namespace bulkhead::wasm {
namespace {

// More than any function of preview 1 has parameters (path_open: 9).
constexpr std::size_t kSlotsMax = 16;

constexpr std::string_view kMemoryExport = "memory";

// The one function of the wasi-threads proposal.
constexpr std::string_view kThreadModule = "wasi";
constexpr std::string_view kThreadSpawn = "thread-spawn";

constexpr std::uint8_t kPageBytesLog2 = 16;
constexpr std::uint64_t kPageBytes = std::uint64_t{1} << kPageBytesLog2;

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
    control = called.call(*context.program->wasi, MemoryOf(caller, context),
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
  context.exit_code = context.program->wasi->Facts().exit_code.value_or(0);  // the first one counts
  constexpr std::string_view kUnwinding = "the guest is being ended";
  return wasmtime_trap_new(kUnwinding.data(), kUnwinding.size());
}

const wasi::Function* FindFunction(std::string_view name) {
  const std::span<const wasi::Function> functions = wasi::Functions();
  const auto found =
      std::lower_bound(functions.begin(), functions.end(), name,
                       [](const wasi::Function& f, std::string_view n) { return f.name < n; });
  return found != functions.end() && found->name == name ? &*found : nullptr;
}

Status Define(wasmtime_linker_t* linker, const wasi::Function& function) {
  // The callback's data is not const in the engine's interface.
  auto* const data = const_cast<wasi::Function*>(&function);
  return DefineFunction(linker, {wasi::kImportModule, function.name, function.signature},
                        {&CallHostFunction, data});
}

struct EntryPoint {
  std::string_view name;
  std::size_t parameters;  // all i32; no results
};

Status RequireExport(const wasmtime_module_t* module, const EntryPoint& entry) {
  ExportTypes exports;
  wasmtime_module_exports(module, exports.get());
  const auto fits = [&entry](const wasm_exporttype_t* item) {
    const wasm_functype_t* const type =
        wasm_externtype_as_functype_const(wasm_exporttype_type(item));
    if (type == nullptr || ViewOf(wasm_exporttype_name(item)) != entry.name) {
      return false;
    }
    const wasm_valtype_vec_t* const parameters = wasm_functype_params(type);
    return parameters->size == entry.parameters && wasm_functype_results(type)->size == 0 &&
           std::all_of(parameters->data, parameters->data + parameters->size,
                       [](const wasm_valtype_t* t) { return wasm_valtype_kind(t) == WASM_I32; });
  };
  if (std::none_of(exports.begin(), exports.end(), fits)) {
    return LinkError(
        fmt::format("the module exports no function {} with {} parameters and without results",
                    entry.name, entry.parameters));
  }
  return {};
}

wasm_trap_t* CallSpawn(void* /*nothing*/, wasmtime_caller_t* caller, wasmtime_val_raw_t* values,
                       std::size_t /*count*/) noexcept {
  auto& context =
      *static_cast<HostContext*>(wasmtime_context_get_data(wasmtime_caller_context(caller)));
  values[0].i32 = SpawnThread(context, values[0].i32);
  return nullptr;
}

// The memory of the import's type, but not larger than the limit.
Result<SharedMemory> MakeSharedMemory(const GuestProgram& program,
                                      const wasm_memorytype_t* declared) {
  std::uint64_t pages_max = 0;
  const std::uint64_t pages_min = wasmtime_memorytype_minimum(declared);
  wasmtime_memorytype_maximum(declared, &pages_max);
  pages_max = std::min(pages_max, program.execute.memory_bytes / kPageBytes);
  if (pages_min > pages_max) {
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("a memory of {} bytes does not fit into the limit of {} bytes",
                            pages_min * kPageBytes, program.execute.memory_bytes));
  }
  wasm_memorytype_t* type = nullptr;
  if (const ErrorHandle error{wasmtime_memorytype_new(pages_min, true, pages_max, false, true,
                                                      kPageBytesLog2, &type)}) {
    return LinkError(MessageOf(error.get()));
  }
  const MemoryType owned(type);
  wasmtime_sharedmemory_t* memory = nullptr;
  if (const ErrorHandle error{
          wasmtime_sharedmemory_new(program.engine->get(), owned.get(), &memory)}) {
    return Fail(ErrorCode::kResourceExhausted, MessageOf(error.get()));
  }
  return SharedMemory(memory);
}

Status DefineMemory(GuestProgram& program, wasmtime_linker_t* linker,
                    const wasm_importtype_t* import) {
  const wasm_memorytype_t* const type =
      wasm_externtype_as_memorytype_const(wasm_importtype_type(import));
  if (program.shared_memory != nullptr || !wasmtime_memorytype_isshared(type)) {
    return LinkError("a module imports one shared memory and no other");
  }
  program.shared_memory = BH_TRY(MakeSharedMemory(program, type));
  wasmtime_extern_t item;
  item.kind = WASMTIME_EXTERN_SHAREDMEMORY;
  item.of.sharedmemory = program.shared_memory.get();
  // A shared memory belongs to no store, but the engine's interface asks for one.
  const Store store(wasmtime_store_new(program.engine->get(), nullptr, nullptr));
  const std::string_view module = ViewOf(wasm_importtype_module(import));
  const std::string_view name = ViewOf(wasm_importtype_name(import));
  const ErrorHandle error(wasmtime_linker_define(linker, wasmtime_store_context(store.get()),
                                                 module.data(), module.size(), name.data(),
                                                 name.size(), &item));
  return error == nullptr ? Status() : LinkError(MessageOf(error.get()));
}

Status DefineImport(GuestProgram& program, wasmtime_linker_t* linker,
                    const wasm_importtype_t* import) {
  const std::string_view module = ViewOf(wasm_importtype_module(import));
  const std::string_view name = ViewOf(wasm_importtype_name(import));
  const bool threads = program.threads.has_value();
  if (threads && wasm_externtype_kind(wasm_importtype_type(import)) == WASM_EXTERN_MEMORY) {
    return DefineMemory(program, linker, import);
  }
  if (program.sketch()) {
    const contract::Import* const function = FindSketchFunction(module, name);
    return function == nullptr ? Status() : DefineSketchFunction(linker, *function);
  }
  if (threads && module == kThreadModule && name == kThreadSpawn) {
    BH_TRY(RequireExport(program.module.get(), {kThreadEntryPoint, 2}));
    return DefineFunction(linker, {kThreadModule, kThreadSpawn, "i:i"}, {&CallSpawn, nullptr});
  }
  const wasi::Function* const function =
      module == wasi::kImportModule ? FindFunction(name) : nullptr;
  return function == nullptr ? Status() : Define(linker, *function);
}

// Only what the module imports: defining all 46 functions costs more than running a small guest.
// What is left over makes the linking fail.
Status DefineImports(GuestProgram& program, wasmtime_linker_t* linker) {
  // A module may import a function twice.
  wasmtime_linker_allow_shadowing(linker, true);
  ImportTypes imports;
  wasmtime_module_imports(program.module.get(), imports.get());
  for (const wasm_importtype_t* import : imports) {
    BH_TRY(DefineImport(program, linker, import));
  }
  return {};
}

}  // namespace

wasi::GuestMemory MemoryOf(wasmtime_caller_t* caller, HostContext& context) {
  if (const wasmtime_sharedmemory_t* const shared = context.program->shared_memory.get()) {
    return {wasmtime_sharedmemory_data(shared), wasmtime_sharedmemory_data_size(shared)};
  }
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

std::int32_t SpawnThread(HostContext& context, std::int32_t argument) noexcept {
  constexpr std::int32_t kRefused = -1;
  try {
    const std::optional<std::uint32_t> thread = context.program->threads->Spawn(argument);
    return thread ? static_cast<std::int32_t>(*thread) : kRefused;
  } catch (const std::bad_alloc&) {
    return kRefused;
  }
}

Status LinkHostFunctions(GuestProgram& program) {
  BH_TRY(RequireExport(program.module.get(), {kEntryPoint, 0}));
  if (program.sketch()) {
    BH_TRY(RequireExport(program.module.get(), {kThreadEntryPoint, 2}));
  }
  const Linker linker(wasmtime_linker_new(program.engine->get()));
  BH_TRY(DefineImports(program, linker.get()));
  wasmtime_instance_pre_t* linked = nullptr;
  if (const ErrorHandle error{
          wasmtime_linker_instantiate_pre(linker.get(), program.module.get(), &linked)}) {
    return LinkError(MessageOf(error.get()));
  }
  program.linked.reset(linked);
  return {};
}

}  // namespace bulkhead::wasm
