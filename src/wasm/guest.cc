#include "wasm/guest.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "wasm/compile.h"
#include "wasm/convert_text.h"
#include "wasm/guest_thread.h"
#include "wasm/outcome.h"
#include "worker/worker_main.h"

namespace bulkhead::wasm {
namespace {

using Kind = wire::Terminal::Kind;
using Clock = std::chrono::steady_clock;

// Less does not hold the frames of ordinary guests, more is address space nobody can fill.
constexpr std::uint64_t kStackBytesMin = 16U << 10;
constexpr std::uint64_t kStackBytesMax = 1U << 30;

// Somebody else's `ulimit -v`: the worker sets no such limit.
bool AddressSpaceIsLimited() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

std::chrono::microseconds Since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
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

std::uint64_t GuestDataBytes(const wire::Execute& execute) {
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - execute.memory_bytes;
  return execute.memory_bytes + std::min(room, execute.memory_overhead_bytes);
}

// The whole life of a thread that the guest started. What ends the run here ends it at once: other
// threads may wait for something that never comes.
std::uint64_t RunChild(GuestProgram& program, const ThreadStart& start) {
  Result<GuestThread> thread = GuestThread::Create(program, start);
  if (!thread) {
    program.control->EndNow(WorkerFailure(thread.error()));
    return 0;
  }
  const Execution execution = thread->Run();
  if (program.sketch()) {
    program.hub->OwnerExited(start.thread);
  }
  const bool fine = execution.returned() || (program.sketch() && execution.exited_with_success());
  if (!fine) {
    wire::Terminal terminal = program.sketch() ? ChildFailure(execution, program, start.thread)
                                               : EndedBy(execution, program, start.thread);
    FillFacts(program, terminal);
    program.control->EndNow(std::move(terminal));
  }
  return execution.fuel_left;
}

Result<std::unique_ptr<sketch::Hub>> MakeHub(worker::RunRequest& request,
                                             const sketch::CommitHooks& hooks) {
  static const MonotonicClock kClock;
  const wire::BlobLimits& blobs = request.execute.blobs;
  sketch::HubConfig config;
  config.hooks = hooks;
  config.limits = {.chunk_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(
                       blobs.chunk_bytes, std::numeric_limits<std::uint32_t>::max())),
                   .blob_bytes = blobs.blob_bytes,
                   .blobs_bytes = blobs.sketch_bytes,
                   .blobs = blobs.live_max,
                   .pending_reads = blobs.pending_reads_max,
                   .pending_writes = blobs.pending_writes_max,
                   .retained_bytes = blobs.transfer_bytes,
                   .idle_timeout = std::chrono::microseconds(blobs.idle_timeout_us)};
  if (request.output.valid()) {
    config.output = {std::move(request.output), request.execute.output_bytes_max};
  }
  return sketch::Hub::Create(std::move(config), kClock);
}

// Nobody starts anything any more, whoever waits is woken, and whoever works is waited for.
void CloseSketch(GuestProgram& program) {
  program.threads->Close();
  program.hub->Revoke(sketch::OperationStatus::kClosed);
  program.threads->Join();
  program.hub->Finish();
}

void AllowThreads(GuestProgram& program) {
  const wire::Execute& execute = program.execute;
  const ThreadGroup::Settings settings{execute.threads, execute.fuel,
                                       execute.stack_bytes + kHostStackBytes};
  program.threads.emplace(
      settings, [&program] { return program.control->stop().has_value(); },
      [&program](const ThreadStart& start) { return RunChild(program, start); });
}

}  // namespace

WasmRunHandler::WasmRunHandler(TestHooks hooks)
    : hooks_(std::move(hooks)), scarce_address_space_(AddressSpaceIsLimited()) {}

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
    case wire::Mode::kCompile:
      return CompileOnly(request, scarce_address_space_);
  }
  return worker::MakeTerminal(Kind::kWorkerFailure, "unknown mode");
}

// From bytes, or from their code, to a program that could begin.
std::optional<wire::Terminal> WasmRunHandler::Prepare(worker::RunRequest& request) {
  const wire::Execute& execute = program_.execute;
  program_.budget.emplace(execute.memory_bytes);
  program_.engine.emplace(SettingsOf(request, scarce_address_space_), *program_.budget);
  const bool has_code = !request.code.empty();
  Result<Module> module =
      has_code ? program_.engine->Load(request.code) : program_.engine->Compile(request.module);
  if (!module) {
    return has_code ? CodeRefused(module.error()) : Refused(module.error());
  }
  program_.module = *std::move(module);
  if (execute.profile != wire::GuestProfile::kWasi) {
    AllowThreads(program_);
  }
  if (const Status linked = LinkHostFunctions(program_); !linked) {
    return linked.error().code == ErrorCode::kResourceExhausted ? MemoryRefused(linked.error())
                                                                : Refused(linked.error());
  }
  if (program_.sketch()) {
    Result<std::unique_ptr<sketch::Hub>> hub = MakeHub(request, hooks_.commit);
    if (!hub) {
      return WorkerFailure(hub.error());
    }
    program_.hub = *std::move(hub);
    if (hooks_.trace) {
      program_.trace.emplace();
    }
    return std::nullopt;
  }
  Result<std::unique_ptr<wasi::Wasi>> wasi = MakeWasi(request, program_.control->stop_event());
  if (!wasi) {
    return WorkerFailure(wasi.error());
  }
  program_.wasi = *std::move(wasi);
  return std::nullopt;
}

wire::Terminal WasmRunHandler::RunGuest(worker::RunRequest request, worker::RunControl& control) {
  const Clock::time_point start = Clock::now();
  program_.control = &control;
  program_.execute = request.execute;
  if (std::optional<wire::Terminal> unfit = Prepare(request)) {
    return *std::move(unfit);
  }
  const wire::Execute& execute = program_.execute;
  const std::uint64_t fuel = program_.threads ? execute.threads.root_fuel : execute.fuel;
  Result<GuestThread> root = GuestThread::Create(program_, {.fuel = fuel});
  if (!root) {
    return WorkerFailure(root.error());
  }
  if (const Status entered = request.guest_phase.Enter(GuestDataBytes(execute)); !entered) {
    return WorkerFailure(entered.error());
  }
  if (!control.Begin(Since(start))) {
    return Stopped(control.stop().value_or(worker::StopCause::kCancelled));
  }

  const Execution execution = root->Run();
  if (program_.sketch()) {
    CloseSketch(program_);
  }
  if (program_.trace) {
    control.SetTrace(program_.trace->Text(program_.hub->Snapshot()));
  }
  wire::Terminal terminal = EndedBy(execution, program_, 0);
  terminal.facts.fuel_used = program_.metered() ? fuel - execution.fuel_left : 0;
  terminal.facts.instantiate_us = static_cast<std::uint64_t>(execution.instantiate_time.count());
  terminal.facts.execute_us = static_cast<std::uint64_t>(execution.execute_time.count());
  FillFacts(program_, terminal);
  return terminal;
}

void WasmRunHandler::Interrupt(worker::StopCause cause) noexcept {
  program_.engine->Interrupt();
  if (program_.sketch()) {
    program_.hub->Revoke(cause == worker::StopCause::kCancelled
                             ? sketch::OperationStatus::kCancelled
                             : sketch::OperationStatus::kTimedOut);
  }
}

void WasmWorkerMain(TestHooks hooks) {
  // Never destroyed, see RunHandler.
  worker::WorkerMain(*new WasmRunHandler(std::move(hooks)));
}

}  // namespace bulkhead::wasm
