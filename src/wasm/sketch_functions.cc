#include "wasm/sketch_functions.h"

#include <algorithm>
#include <new>

#include "wasi/errno.h"
#include "wasm/host_functions.h"
#include "wasm/link.h"

namespace bulkhead::wasm {
namespace {

using contract::Function;

constexpr auto kFault = static_cast<std::int32_t>(wasi::Errno::kFault);
constexpr std::uint32_t kWritePartsMax = 1024;
constexpr std::uint32_t kPartBytes = 8;  // address and length

// One call: arguments in, the result in slot 0.
struct SketchCall {
  HostContext& context;
  wasi::GuestMemory memory;
  wasmtime_val_raw_t* slots;

  sketch::Hub& hub() const { return *context.program->hub; }

  std::int32_t I32(std::size_t i) const { return slots[i].i32; }

  std::uint32_t U32(std::size_t i) const { return static_cast<std::uint32_t>(slots[i].i32); }

  std::uint64_t U64(std::size_t i) const { return static_cast<std::uint64_t>(slots[i].i64); }

  void Return(std::int32_t value) const { slots[0].i32 = value; }

  void Return(std::int64_t value) const { slots[0].i64 = value; }
};

std::string_view Describe(sketch::Trap trap) {
  switch (trap) {
    case sketch::Trap::kUnknownKind:
      return "operation_submit: the contract has no operation of this kind";
    case sketch::Trap::kInvalidLength:
      return "a stream call with a length below 0 or above 65536";
    case sketch::Trap::kOutOfBounds:
      return "a stream call with a range outside the memory";
  }
  return "a host call with impossible arguments";
}

wasm_trap_t* MakeTrap(std::string_view message) {
  return wasmtime_trap_new(message.data(), message.size());
}

template <class T>
wasm_trap_t* Deliver(const SketchCall& call, const sketch::Answer<T>& answer) {
  if (!answer) {
    return MakeTrap(Describe(answer.error()));
  }
  call.Return(*answer);
  return nullptr;
}

// Ranges are checked before the first is read or written.
std::int32_t DiscardWrite(const SketchCall& call) {
  const std::uint32_t parts = call.U32(2);
  if (parts > kWritePartsMax ||
      !call.memory.Contains(call.U32(1), std::uint64_t{parts} * kPartBytes) ||
      !call.memory.Contains(call.U32(3), sizeof(std::uint32_t))) {
    return kFault;
  }
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::uint32_t part = call.U32(1) + i * kPartBytes;
    const auto address = call.memory.Get<std::uint32_t>(part);
    const auto bytes = call.memory.Get<std::uint32_t>(part + sizeof(std::uint32_t));
    if (!call.memory.Contains(address.value_or(0), bytes.value_or(0))) {
      return kFault;
    }
  }
  return call.memory.Put(call.U32(3), std::uint32_t{0}) ? 0 : kFault;
}

std::int32_t EmptyEnvironment(const SketchCall& call) {
  if (!call.memory.Contains(call.U32(0), sizeof(std::uint32_t)) ||
      !call.memory.Contains(call.U32(1), sizeof(std::uint32_t))) {
    return kFault;
  }
  const bool stored = call.memory.Put(call.U32(0), std::uint32_t{0}) &&
                      call.memory.Put(call.U32(1), std::uint32_t{0});
  return stored ? 0 : kFault;
}

wasm_trap_t* ExitThread(const SketchCall& call) {
  call.context.exit_code = call.U32(0);
  call.context.unwound_by = wasi::Control::kExit;
  return MakeTrap("the thread is being ended");
}

wasm_trap_t* Perform(Function function, const SketchCall& call) {  // tidy: decision-table
  const sketch::Owner owner = call.context.thread;
  switch (function) {
    case Function::kKernelYield:
      break;
    case Function::kOperationSubmit:
      return Deliver(call,
                     call.hub().Submit(owner, call.I32(0), call.U64(1), call.U64(2), call.memory));
    case Function::kOperationPoll:
      call.Return(call.hub().Poll(owner, call.U64(0)));
      break;
    case Function::kOperationYield:
      call.Return(call.hub().Yield(owner, call.U64(0)));
      break;
    case Function::kOperationCancel:
      call.Return(call.hub().Cancel(owner, call.U64(0)));
      break;
    case Function::kStreamRead:
      return Deliver(
          call, call.hub().StreamRead(owner, call.U64(0), call.U32(1), call.I32(2), call.memory));
    case Function::kStreamWrite:
      return Deliver(
          call, call.hub().StreamWrite(owner, call.U64(0), call.U32(1), call.I32(2), call.memory));
    case Function::kStreamClose:
      call.Return(call.hub().StreamClose(owner, call.U64(0)));
      break;
    case Function::kReleaseEncryptedArchive:
    case Function::kReleaseAuthenticatedArchive:
    case Function::kReleaseArchiveEntry:
      call.Return(std::int32_t{1});
      break;
    case Function::kThreadSpawn:
      call.Return(SpawnThread(call.context, call.I32(0)));
      break;
    case Function::kClockTimeGet:
      call.Return(call.memory.Put(call.U32(2), std::uint64_t{0}) ? 0 : kFault);
      break;
    case Function::kEnvironGet:
    case Function::kSchedYield:
      call.Return(std::int32_t{0});
      break;
    case Function::kEnvironSizesGet:
      call.Return(EmptyEnvironment(call));
      break;
    case Function::kFdWrite:
      call.Return(DiscardWrite(call));
      break;
    case Function::kProcExit:
      return ExitThread(call);
  }
  return nullptr;
}

// The engine's callback for every function of the contract; `import` says which. Nothing may be
// thrown through the guest's frames.
wasm_trap_t* CallSketchFunction(void* import, wasmtime_caller_t* caller, wasmtime_val_raw_t* slots,
                                std::size_t /*count*/) noexcept {
  const auto& called = *static_cast<const contract::Import*>(import);
  auto& context =
      *static_cast<HostContext*>(wasmtime_context_get_data(wasmtime_caller_context(caller)));
  try {
    if (context.program->trace) {
      const bool submits = called.function == Function::kOperationSubmit;
      context.program->trace->Note(called.name, context.thread, submits ? slots[0].i32 : 0);
    }
    return Perform(called.function, {context, MemoryOf(caller, context), slots});
  } catch (const std::bad_alloc&) {
    return MakeTrap("the host is out of memory");
  }
}

}  // namespace

Status DefineSketchFunction(wasmtime_linker_t* linker, const contract::Import& import) {
  // The callback's data is not const in the engine's interface.
  auto* const data = const_cast<contract::Import*>(&import);
  return DefineFunction(linker, {import.module, import.name, import.signature},
                        {&CallSketchFunction, data});
}

const contract::Import* FindSketchFunction(std::string_view module, std::string_view name) {
  const auto all = contract::Imports();
  const auto found = std::find_if(all.begin(), all.end(), [&](const contract::Import& import) {
    return import.module == module && import.name == name;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace bulkhead::wasm
