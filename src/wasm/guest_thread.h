// One thread of a guest: an instance of its own over what the program shares.
#pragma once

#include <bulkhead/result.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "wasm/guest_program.h"
#include "wasm/host_functions.h"

namespace bulkhead::wasm {

// How the guest's code came back: neither is set if it returned.
struct Return {
  TrapHandle trap;
  ErrorHandle error;

  bool normal() const { return trap == nullptr && error == nullptr; }
};

// Everything one thread ever ran, start section included.
struct Execution {
  Return instantiated;
  Return called;
  wasi::Control unwound_by = wasi::Control::kContinue;
  std::uint32_t exit_code = 0;  // of kExit
  std::uint64_t fuel_left = 0;
  std::chrono::microseconds instantiate_time{0};
  std::chrono::microseconds execute_time{0};

  // What came back last.
  const Return& last() const { return instantiated.normal() ? called : instantiated; }

  bool out_of_fuel() const;

  // Neither returned with an error nor unwound.
  bool returned() const { return unwound_by == wasi::Control::kContinue && last().normal(); }

  bool exited_with_success() const { return unwound_by == wasi::Control::kExit && exit_code == 0; }
};

// Made and used on the thread it stands for, but for the first one.
class GuestThread {
 public:
  // Limited, fuelled, and interrupted by the next epoch.
  static Result<GuestThread> Create(GuestProgram& program, const ThreadStart& start);

  // The one call: _start of thread 0, wasi_thread_start of the others. A run that is stopped by now
  // does not begin. Consumes the instance.
  Execution Run();

 private:
  GuestThread(std::unique_ptr<HostContext> context, Store store, const ThreadStart& start)
      : context_(std::move(context)), store_(std::move(store)), start_(start) {}

  Return Instantiate(wasmtime_instance_t* instance) const;
  Return CallEntryPoint(const wasmtime_instance_t& instance) const;

  wasmtime_context_t* inside() const { return wasmtime_store_context(store_.get()); }

  std::unique_ptr<HostContext> context_;  // the store points to it
  Store store_;
  ThreadStart start_;
};

}  // namespace bulkhead::wasm
