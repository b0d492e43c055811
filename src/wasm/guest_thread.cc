#include "wasm/guest_thread.h"

#include <algorithm>
#include <array>
#include <utility>

#include "wasm/trap.h"

namespace bulkhead::wasm {
namespace {

using Clock = std::chrono::steady_clock;

// A module has one memory, seldom two; each reserves 4 GiB of address space.
constexpr std::int64_t kMemoriesMax = 16;
constexpr std::int64_t kTablesMax = 64;
// One thread is one instance.
constexpr std::int64_t kInstancesMax = 1;

constexpr std::uint64_t kTableEntryBytes = 8;
constexpr std::uint64_t kTableEntriesMax =
    1'000'000;  // of one table; the largest real programs have some 100 000
constexpr std::uint64_t kTableEntriesMin = 1024;

// Tables cannot use more than what memories may: the engine counts entries of each table only.
std::int64_t TableEntriesMax(std::uint64_t memory_bytes) {
  return static_cast<std::int64_t>(std::clamp(memory_bytes / (kTableEntryBytes * kTablesMax),
                                              kTableEntriesMin, kTableEntriesMax));
}

std::chrono::microseconds Since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
}

bool IsOutOfFuel(const Return& returned) {
  return returned.trap != nullptr &&
         TrapCode(returned.trap.get()) == WASMTIME_TRAP_CODE_OUT_OF_FUEL;
}

}  // namespace

bool Execution::out_of_fuel() const {
  return IsOutOfFuel(last());
}

Result<GuestThread> GuestThread::Create(GuestProgram& program, const ThreadStart& start) {
  auto context = std::make_unique<HostContext>();
  context->program = &program;
  context->thread = start.thread;
  Store store(wasmtime_store_new(program.engine->get(), context.get(), nullptr));
  constexpr std::int64_t kCountedByTheBudget = -1;
  wasmtime_store_limiter(store.get(), kCountedByTheBudget,
                         TableEntriesMax(program.execute.memory_bytes), kInstancesMax, kTablesMax,
                         kMemoriesMax);
  wasmtime_context_t* const inside = wasmtime_store_context(store.get());
  if (program.execute.cooperative) {
    wasmtime_context_set_epoch_deadline(inside, 1);
  }
  if (program.metered()) {
    if (const ErrorHandle error{wasmtime_context_set_fuel(inside, start.fuel)}) {
      return Fail(ErrorCode::kInternal, MessageOf(error.get()));
    }
  }
  return GuestThread(std::move(context), std::move(store), start);
}

Return GuestThread::Instantiate(wasmtime_instance_t* instance) const {
  wasm_trap_t* trap = nullptr;
  ErrorHandle error(wasmtime_instance_pre_instantiate(context_->program->linked.get(), inside(),
                                                      instance, &trap));
  return {TrapHandle(trap), std::move(error)};
}

Return GuestThread::CallEntryPoint(const wasmtime_instance_t& instance) const {
  const bool first = start_.thread == 0;
  const std::string_view name = first ? kEntryPoint : kThreadEntryPoint;
  const std::size_t parameters = first ? 0 : 2;
  std::array<wasmtime_val_t, 2> arguments{};
  arguments[0].kind = arguments[1].kind = WASMTIME_I32;
  arguments[0].of.i32 = static_cast<std::int32_t>(start_.thread);
  arguments[1].of.i32 = start_.argument;
  wasmtime_extern_t entry;
  // Linking has established that it is there and a function.
  wasmtime_instance_export_get(inside(), &instance, name.data(), name.size(), &entry);
  wasm_trap_t* trap = nullptr;
  ErrorHandle error(wasmtime_func_call(inside(), &entry.of.func, arguments.data(), parameters,
                                       nullptr, 0, &trap));
  return {TrapHandle(trap), std::move(error)};
}

Execution GuestThread::Run() {
  Execution execution;
  wasmtime_instance_t instance;
  const Clock::time_point start = Clock::now();
  // A stop interrupts the stores that exist; this one may have come after it.
  if (context_->program->control->stop()) {
    execution.unwound_by = wasi::Control::kStopped;
    return execution;
  }
  execution.instantiated = Instantiate(&instance);
  execution.instantiate_time = Since(start);
  if (execution.instantiated.normal()) {
    const Clock::time_point called = Clock::now();
    execution.called = CallEntryPoint(instance);
    execution.execute_time = Since(called);
  }
  execution.unwound_by = context_->unwound_by;
  execution.exit_code = context_->exit_code;
  if (context_->program->metered()) {
    static_cast<void>(
        ErrorHandle(wasmtime_context_get_fuel(inside(), &execution.fuel_left)));  // else 0
  }
  store_.reset();
  return execution;
}

}  // namespace bulkhead::wasm
