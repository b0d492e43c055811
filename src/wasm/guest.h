// One run of an untrusted module, from its bytes to the terminal: the story of the WASM worker.
#pragma once

#include <optional>

#include "wasm/guest_program.h"
#include "worker/run_handler.h"

namespace bulkhead::wasm {

// For the workers of tests: a program that passes any is no worker to be trusted.
struct TestHooks {
  sketch::CommitHooks commit = {};
  bool trace = false;  // report what a sketch calls
};

class WasmRunHandler final : public worker::RunHandler {
 public:
  explicit WasmRunHandler(TestHooks hooks = {});

  Result<std::size_t> GuestThreadStackBytes(const wire::Execute& execute) override;
  wire::Terminal Run(worker::RunRequest request, worker::RunControl& control) override;
  void Interrupt(worker::StopCause cause) noexcept override;

 private:
  wire::Terminal RunGuest(worker::RunRequest request, worker::RunControl& control);
  std::optional<wire::Terminal> Prepare(worker::RunRequest& request);

  const TestHooks hooks_;
  const bool scarce_address_space_;  // asked before the lock-down, which forbids the question
  // Made before RunControl::Begin and kept until the process ends: Interrupt may come at any time
  // after it, and taking an engine down costs time that buys nothing.
  GuestProgram program_;
};

// A worker program's main: serves one run and exits.
[[noreturn]] void WasmWorkerMain(TestHooks hooks = {});

}  // namespace bulkhead::wasm
