#include "wasm/guest.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "wasi/wasi.h"
#include "wasm/convert_text.h"
#include "wasm/host_functions.h"
#include "wasm/trap.h"
#include "worker/worker_main.h"

namespace bulkhead::wasm {
namespace {

using Kind = wire::Terminal::Kind;
using Clock = std::chrono::steady_clock;

// Less does not hold the frames of ordinary guests, more is address space nobody can fill.
constexpr std::uint64_t kStackBytesMin = 16U << 10;
constexpr std::uint64_t kStackBytesMax = 1U << 30;

// A module has one memory, seldom two; each reserves 4 GiB of address space.
constexpr std::int64_t kMemoriesMax = 16;
constexpr std::int64_t kTablesMax = 64;
// One guest is one instance.
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

std::uint64_t MicrosecondsSince(Clock::time_point start) {
  return static_cast<std::uint64_t>(Since(start).count());
}

// Somebody else's `ulimit -v`: the worker sets no such limit.
bool AddressSpaceIsLimited() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

wire::Terminal Refused(const Error& error) {
  wire::Terminal terminal = worker::MakeTerminal(Kind::kModuleRefused, error.message);
  terminal.reason = error.reason;
  return terminal;
}

wire::Terminal WorkerFailure(const Error& error) {
  return worker::MakeTerminal(Kind::kWorkerFailure, error.message);
}

wire::Terminal LimitReached(wire::Terminal::Limit limit, std::string_view diagnostic) {
  wire::Terminal terminal = worker::MakeTerminal(Kind::kLimitReached, diagnostic);
  terminal.limit = limit;
  return terminal;
}

wire::Terminal Completed(wire::Terminal::CompletedAs how) {
  wire::Terminal terminal = worker::MakeTerminal(Kind::kCompleted);
  terminal.completed_as = how;
  return terminal;
}

wire::Terminal Stopped(worker::StopCause cause) {
  switch (cause) {
    case worker::StopCause::kCancelled:
      return worker::MakeTerminal(Kind::kCancelled);
    case worker::StopCause::kDeadlineExceeded:
      return worker::MakeTerminal(Kind::kDeadlineExceeded);
  }
  return worker::MakeTerminal(Kind::kCancelled);
}

wire::Terminal Trapped(wire::Terminal::Trap trap) {
  wire::Terminal terminal = worker::MakeTerminal(Kind::kTrapped);
  terminal.trap = std::move(trap);
  return terminal;
}

Result<std::unique_ptr<wasi::Wasi>> MakeWasi(worker::RunRequest& request, BorrowedFd stop_event) {
  wasi::WasiConfig config;
  config.args = std::move(request.execute.arguments);
  config.env = std::move(request.execute.environment);
  config.stdin_fd = std::move(request.stdin_fd);
  config.stdout_fd = std::move(request.stdout_fd);
  config.stderr_fd = std::move(request.stderr_fd);
  for (worker::DirectoryGrant& grant : request.directories) {
    config.preopens.push_back(
        {std::move(grant.directory), std::move(grant.guest_path), grant.writable});
  }
  if (request.output.valid()) {
    wasi::OutputGrant output;
    output.file = std::move(request.output);
    output.name = request.execute.output_name;
    output.bytes_max = request.execute.output_bytes_max;
    config.output = std::move(output);
  }
  config.stop_event = stop_event;
  return wasi::Wasi::Create(std::move(config));
}

// The store of a guest that has not run yet: limited, fuelled, and interrupted by the next epoch.
Result<Store> MakeStore(wasm_engine_t* engine, const wire::Execute& execute, HostContext& context) {
  Store store(wasmtime_store_new(engine, &context, nullptr));
  constexpr std::int64_t kCountedByTheBudget = -1;
  wasmtime_store_limiter(store.get(), kCountedByTheBudget, TableEntriesMax(execute.memory_bytes),
                         kInstancesMax, kTablesMax, kMemoriesMax);
  wasmtime_context_t* const inside = wasmtime_store_context(store.get());
  if (execute.cooperative) {
    wasmtime_context_set_epoch_deadline(inside, 1);
  }
  if (execute.fuel != 0) {
    if (const ErrorHandle error{wasmtime_context_set_fuel(inside, execute.fuel)}) {
      return Fail(ErrorCode::kInternal, MessageOf(error.get()));
    }
  }
  return store;
}

// How the guest's code came back: neither is set if it returned.
struct Return {
  TrapHandle trap;
  ErrorHandle error;

  bool normal() const { return trap == nullptr && error == nullptr; }
};

struct Execution {
  Return instantiated;
  Return called;
  wire::Terminal::Facts facts;
};

Return Instantiate(const wasmtime_instance_pre_t* linked, wasmtime_context_t* inside,
                   wasmtime_instance_t* instance) {
  wasm_trap_t* trap = nullptr;
  ErrorHandle error(wasmtime_instance_pre_instantiate(linked, inside, instance, &trap));
  return {TrapHandle(trap), std::move(error)};
}

Return CallEntryPoint(wasmtime_context_t* inside, const wasmtime_instance_t& instance) {
  wasmtime_extern_t entry;
  // Linking has established that it is there and a function.
  wasmtime_instance_export_get(inside, &instance, kEntryPoint.data(), kEntryPoint.size(), &entry);
  wasm_trap_t* trap = nullptr;
  ErrorHandle error(wasmtime_func_call(inside, &entry.of.func, nullptr, 0, nullptr, 0, &trap));
  return {TrapHandle(trap), std::move(error)};
}

// Everything of the guest's that ever runs, start section included.
Execution Execute(const wasmtime_instance_pre_t* linked, wasmtime_store_t* store) {
  wasmtime_context_t* const inside = wasmtime_store_context(store);
  Execution execution;
  wasmtime_instance_t instance;
  const Clock::time_point start = Clock::now();
  execution.instantiated = Instantiate(linked, inside, &instance);
  execution.facts.instantiate_us = MicrosecondsSince(start);
  if (execution.instantiated.normal()) {
    const Clock::time_point called = Clock::now();
    execution.called = CallEntryPoint(inside, instance);
    execution.facts.execute_us = MicrosecondsSince(called);
  }
  return execution;
}

std::uint64_t FuelUsed(const wire::Execute& execute, wasmtime_store_t* store) {
  std::uint64_t left = 0;
  if (execute.fuel == 0 ||
      ErrorHandle(wasmtime_context_get_fuel(wasmtime_store_context(store), &left)) != nullptr) {
    return 0;
  }
  return execute.fuel - left;
}

bool OutOfFuel(const Return& returned) {
  return returned.trap != nullptr &&
         TrapCode(returned.trap.get()) == WASMTIME_TRAP_CODE_OUT_OF_FUEL;
}

// What one proc_exit means; the code's bits are kept.
wire::Terminal Exited(std::uint32_t code) {
  if (code == 0) {
    return Completed(wire::Terminal::CompletedAs::kExited);
  }
  wire::Terminal terminal = worker::MakeTerminal(Kind::kNonzeroExit);
  terminal.status = static_cast<std::int32_t>(code);
  return terminal;
}

// For code that was unwound by neither fuel, stop nor exit.
wire::Terminal FailedIn(const Execution& execution) {
  const Return& returned =
      execution.instantiated.normal() ? execution.called : execution.instantiated;
  if (returned.trap != nullptr) {
    return Trapped(DescribeTrap(returned.trap.get()));
  }
  if (!execution.instantiated.normal()) {
    // Linking was done before: what is left to go wrong is that memories and tables do not fit into
    // the limits.
    return LimitReached(wire::Terminal::Limit::kMemory, MessageOf(returned.error.get()));
  }
  return Trapped(DescribeError(returned.error.get()));
}

// The order of precedence: fuel, a decided stop, proc_exit, trap; a stop also overrides a normal
// return.
wire::Terminal Resolve(const Execution& execution, const HostContext& context,
                       const wasi::WasiFacts& host, std::optional<worker::StopCause> stop) {
  if (OutOfFuel(execution.instantiated) || OutOfFuel(execution.called)) {
    return worker::MakeTerminal(Kind::kOutOfFuel);
  }
  if (stop) {
    return Stopped(*stop);
  }
  const bool exited = context.unwound_by == wasi::Control::kExit;
  if (exited && host.exit_code.value_or(0) != 0) {
    return Exited(*host.exit_code);
  }
  if (context.unwound_by == wasi::Control::kStdoutLimit) {
    return LimitReached(wire::Terminal::Limit::kOutput, "standard output reached its limit");
  }
  if (!exited && !(execution.instantiated.normal() && execution.called.normal())) {
    return FailedIn(execution);
  }
  if (host.output_limit_hit) {
    return LimitReached(wire::Terminal::Limit::kOutput, "the output file reached its limit");
  }
  return Completed(exited ? wire::Terminal::CompletedAs::kExited
                          : wire::Terminal::CompletedAs::kStarted);
}

std::uint64_t GuestDataBytes(const wire::Execute& execute) {
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - execute.memory_bytes;
  return execute.memory_bytes + std::min(room, execute.memory_overhead_bytes);
}

}  // namespace

WasmRunHandler::WasmRunHandler() : scarce_address_space_(AddressSpaceIsLimited()) {}

Result<std::size_t> WasmRunHandler::GuestThreadStackBytes(const wire::Execute& execute) {
  if (execute.mode == wire::Mode::kConvertText) {
    return kHostStackBytes;
  }
  if (execute.stack_bytes < kStackBytesMin || execute.stack_bytes > kStackBytesMax) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a guest's stack has from {} to {} bytes, not {}", kStackBytesMin,
                            kStackBytesMax, execute.stack_bytes));
  }
  return execute.stack_bytes + kHostStackBytes;
}

wire::Terminal WasmRunHandler::Run(worker::RunRequest request, worker::RunControl& control) {
  switch (request.execute.mode) {
    case wire::Mode::kRun:
      return RunGuest(std::move(request), control);
    case wire::Mode::kConvertText:
      return ConvertText(request);
  }
  return worker::MakeTerminal(Kind::kWorkerFailure, "unknown mode");
}

wire::Terminal WasmRunHandler::RunGuest(worker::RunRequest request, worker::RunControl& control) {
  const Clock::time_point start = Clock::now();
  const wire::Execute& execute = request.execute;
  budget_.emplace(execute.memory_bytes);
  engine_.emplace(
      EngineSettings{.stack_bytes = execute.stack_bytes,
                     .interruptible = execute.cooperative,
                     .metered = execute.fuel != 0,
                     .parallel_compile = execute.module_bytes >= kParallelCompileBytesMin,
                     .scarce_address_space = scarce_address_space_,
                     .data_images = request.guest_phase.sandboxed()},
      *budget_);

  Result<Module> module = engine_->Compile(request.module);
  if (!module) {
    return Refused(module.error());
  }
  module_ = *std::move(module);
  Result<InstancePre> linked = LinkHostFunctions(engine_->get(), module_.get());
  if (!linked) {
    return Refused(linked.error());
  }
  linked_ = *std::move(linked);

  const Result<std::unique_ptr<wasi::Wasi>> wasi = MakeWasi(request, control.stop_event());
  if (!wasi) {
    return WorkerFailure(wasi.error());
  }
  HostContext context{.wasi = wasi->get()};
  Result<Store> store = MakeStore(engine_->get(), execute, context);
  if (!store) {
    return WorkerFailure(store.error());
  }
  if (const Status entered = request.guest_phase.Enter(GuestDataBytes(execute)); !entered) {
    return WorkerFailure(entered.error());
  }
  if (!control.Begin(Since(start))) {
    return Stopped(control.stop().value_or(worker::StopCause::kCancelled));
  }

  Execution execution = Execute(linked_.get(), store->get());
  execution.facts.fuel_used = FuelUsed(execute, store->get());
  store->reset();

  const wasi::WasiFacts host = (*wasi)->Facts();
  execution.facts.memory_bytes_peak = budget_->peak();
  execution.facts.memory_growth_refused = budget_->refused();
  execution.facts.output_created = host.output_created;
  wire::Terminal terminal = Resolve(execution, context, host, control.stop());
  terminal.facts = execution.facts;
  return terminal;
}

void WasmRunHandler::Interrupt() noexcept {
  engine_->Interrupt();
}

void WasmWorkerMain() {
  // Never destroyed, see RunHandler.
  worker::WorkerMain(*new WasmRunHandler);
}

}  // namespace bulkhead::wasm
