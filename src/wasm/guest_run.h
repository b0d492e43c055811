// For tests: one module in the real worker program, with a scripted parent.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "wasm/engine.h"
#include "wasm/handles.h"
#include "worker/scripted_parent.h"

namespace bulkhead::wasm {

inline constexpr const char* kWasmWorker = BH_BIN_DIR "/bulkhead-wasm-worker";

inline std::string Assemble(std::string_view text) {
  ByteVector binary;
  const ErrorHandle error(wasmtime_wat2wasm(text.data(), text.size(), binary.get()));
  EXPECT_EQ(error, nullptr) << (error ? MessageOf(error.get()) : "") << "\n" << text;
  return std::string(binary.view());
}

// WebAssembly text that imports a function of WASI as $name; all of them return an error number.
inline std::string WasiImport(std::string_view name, std::string_view parameters) {
  return fmt::format(
      R"((import "wasi_snapshot_preview1" "{0}" (func ${0} (param {1}) (result i32))))", name,
      parameters);
}

inline wire::Execute DefaultExecute() {
  wire::Execute execute;
  execute.remaining_ms = 120'000;
  execute.memory_bytes = 64U << 20;
  execute.memory_overhead_bytes = 64U << 20;
  execute.stack_bytes = 2U << 20;
  execute.arguments = {"guest"};
  return execute;
}

class GuestRun {
 public:
  explicit GuestRun(const std::string& module, wire::Execute execute = DefaultExecute())
      : module_(worker::MemoryFile(module, worker::kAllSeals)), execute_(std::move(execute)) {
    execute_.module_bytes = module.size();
    execute_.has_stdout = true;
    execute_.has_stderr = true;
  }

  worker::ScriptedParent& parent() { return parent_; }

  void UseStdin(BorrowedFd fd) {
    execute_.has_stdin = true;
    stdin_ = fd;
  }

  void UseStdout(UniqueFd fd) { stdout_ = std::move(fd); }

  void CloseStdout() { stdout_.Reset(); }

  void UseOutput(BorrowedFd fd) {
    execute_.has_output = true;
    output_ = fd;
  }

  // The hand-over, up to Ready.
  void SendExecute(const wire::Hello& hello = worker::DefaultHello(),
                   const std::vector<BorrowedFd>& directories = {}) {
    const wire::HelloAck ack = parent_.ShakeHands(hello, directories);
    EXPECT_EQ(ack.failed_mechanism, "");
    std::vector<BorrowedFd> descriptors = {module_.borrow()};
    if (execute_.has_stdin) {
      descriptors.push_back(stdin_);
    }
    descriptors.push_back(stdout_.borrow());
    descriptors.push_back(stderr_.borrow());
    if (execute_.has_output) {
      descriptors.push_back(output_);
    }
    parent_.Send(execute_, descriptors);
    EXPECT_EQ(parent_.Expect<wire::Ready>().module_bytes, execute_.module_bytes);
  }

  // To the end, for a guest that starts.
  wire::Terminal Finish(const wire::Hello& hello = worker::DefaultHello(),
                        const std::vector<BorrowedFd>& directories = {}) {
    SendExecute(hello, directories);
    parent_.Expect<wire::Started>();
    auto terminal = parent_.Expect<wire::Terminal>();
    parent_.ExpectExit(0);
    EXPECT_TRUE(terminal.counters.zero());
    return terminal;
  }

  std::string Stdout() const { return worker::ContentOf(stdout_.borrow()); }

  std::string Stderr() const { return worker::ContentOf(stderr_.borrow()); }

 private:
  UniqueFd module_;
  wire::Execute execute_;
  BorrowedFd stdin_;
  UniqueFd stdout_ = worker::MemoryFile("", 0);
  UniqueFd stderr_ = worker::MemoryFile("", 0);
  BorrowedFd output_;
  worker::ScriptedParent parent_{kWasmWorker};
};

}  // namespace bulkhead::wasm
