// Mode compile, and runs that are given its code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "wasm/guest_run.h"

namespace bulkhead::wasm {
namespace {

using worker::DefaultHello;
using worker::MemoryFile;
using worker::ScriptedParent;
using Kind = wire::Terminal::Kind;

constexpr std::string_view kExits7 = R"((module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "some data")
  (func (export "_start") (call $exit (i32.const 7)))))";

wire::Execute CompileExecute(const std::string& module) {
  wire::Execute execute = DefaultExecute();
  execute.mode = wire::Mode::kCompile;
  execute.module_bytes = module.size();
  execute.has_output = true;
  execute.output_bytes_max = 1U << 20;
  execute.arguments.clear();
  return execute;
}

struct Compiled {
  wire::Terminal terminal;
  std::string code;
};

Compiled Compile(const std::string& module, const wire::Execute& execute) {
  const UniqueFd module_file = MemoryFile(module, worker::kAllSeals);
  const UniqueFd output = MemoryFile("", 0);
  ScriptedParent parent(kWasmWorker);
  parent.ShakeHands(DefaultHello());
  parent.Send(execute, {module_file.borrow(), output.borrow()});
  parent.Expect<wire::Ready>();
  Compiled compiled{parent.Expect<wire::Terminal>(), ""};  // and no Started before
  parent.ExpectExit(0);
  compiled.code = worker::ContentOf(output.borrow());
  return compiled;
}

std::string CodeOf(const std::string& module) {
  Compiled compiled = Compile(module, CompileExecute(module));
  EXPECT_EQ(compiled.terminal.kind, Kind::kCompleted) << compiled.terminal.diagnostic;
  EXPECT_FALSE(compiled.code.empty());
  return std::move(compiled.code);
}

// One run of `module` with `code`, which begins at `offset` of its file.
class CodeRun {
 public:
  CodeRun(const std::string& module, const std::string& code, std::uint64_t offset = 0)
      : module_(MemoryFile(module, worker::kAllSeals)),
        code_(MemoryFile(std::string(offset, 'x') + code, 0)) {
    execute.module_bytes = module.size();
    execute.code_bytes = code.size();
    execute.code_offset = offset;
  }

  ScriptedParent& parent() { return parent_; }

  void Send() {
    parent_.ShakeHands(DefaultHello());
    parent_.Send(execute, {module_.borrow(), code_.borrow()});
  }

  wire::Terminal Run() {
    Send();
    parent_.Expect<wire::Ready>();
    parent_.Expect<wire::Started>();
    auto terminal = parent_.Expect<wire::Terminal>();
    parent_.ExpectExit(0);
    return terminal;
  }

  // As Run, of code that is refused before anything starts.
  wire::Terminal Refused() {
    Send();
    parent_.Expect<wire::Ready>();
    auto terminal = parent_.Expect<wire::Terminal>();
    parent_.ExpectExit(0);
    EXPECT_EQ(terminal.kind, Kind::kCodeRefused);
    EXPECT_NE(terminal.diagnostic, "");
    return terminal;
  }

  wire::Execute execute = DefaultExecute();

 private:
  UniqueFd module_;
  UniqueFd code_;
  ScriptedParent parent_{kWasmWorker};
};

TEST(CompiledCode, RunsAsTheModuleWould) {
  const std::string module = Assemble(kExits7);
  const std::string code = CodeOf(module);
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{88}, std::uint64_t{5001}}) {
    const wire::Terminal terminal = CodeRun(module, code, offset).Run();
    EXPECT_EQ(terminal.kind, Kind::kNonzeroExit) << terminal.diagnostic;
    EXPECT_EQ(terminal.status, 7);
  }
}

TEST(CompiledCode, TheModuleIsNotReadAgain) {
  const std::string module = Assemble(kExits7);
  const std::string garbage(module.size(), 'g');
  const wire::Terminal terminal = CodeRun(garbage, CodeOf(module)).Run();
  EXPECT_EQ(terminal.status, 7);
}

TEST(CompiledCode, NothingOfTheModuleRuns) {
  const std::string spins = Assemble(R"((module
    (func $spin (loop $again (br $again))) (start $spin) (func (export "_start"))))");
  EXPECT_FALSE(CodeOf(spins).empty());
}

TEST(CompiledCode, WhatDoesNotValidateIsRefused) {
  const std::string module("\0asm\x01\0\0\0\x0b", 9);
  const Compiled compiled = Compile(module, CompileExecute(module));
  EXPECT_EQ(compiled.terminal.kind, Kind::kModuleRefused);
  EXPECT_EQ(compiled.terminal.reason, "invalid-module");
  EXPECT_EQ(compiled.code, "");
}

TEST(CompiledCode, IsBounded) {
  const std::string module = Assemble(kExits7);
  wire::Execute execute = CompileExecute(module);
  execute.output_bytes_max = 1000;
  const Compiled compiled = Compile(module, execute);
  EXPECT_EQ(compiled.terminal.kind, Kind::kLimitReached);
  EXPECT_EQ(compiled.terminal.limit, wire::Terminal::Limit::kCompile);
  EXPECT_NE(compiled.terminal.diagnostic.find("at most 1000 are accepted"), std::string::npos);
  EXPECT_EQ(compiled.code, "");
}

// What the parent leaves out of the key must not matter: the code is the same byte for byte.
TEST(CompiledCode, DoesNotDependOnStackMemoryOrTime) {
  const std::string module = Assemble(kExits7);
  const std::string code = CodeOf(module);
  wire::Execute execute = CompileExecute(module);
  execute.stack_bytes = 8U << 20;
  execute.memory_bytes = 256U << 20;
  execute.memory_overhead_bytes = 1U << 20;
  execute.remaining_ms = 1000;
  EXPECT_EQ(Compile(module, execute).code, code);
}

TEST(CompiledCode, OfOtherSettingsIsRefused) {
  const std::string module = Assemble(kExits7);
  const std::function<void(wire::Execute&)> changes[] = {
      [](wire::Execute& e) { e.fuel = 1'000'000; },
      [](wire::Execute& e) { e.cooperative = false; },
  };
  for (const auto& change : changes) {
    wire::Execute execute = CompileExecute(module);
    change(execute);
    const std::string other = Compile(module, execute).code;
    CodeRun(module, other).Refused();
    CodeRun fitting(module, other);
    change(fitting.execute);
    const wire::Terminal terminal = fitting.Run();
    EXPECT_EQ(terminal.status, 7) << static_cast<int>(terminal.kind) << terminal.diagnostic;
  }
}

TEST(CompiledCode, WhatIsNoCodeIsRefused) {
  const std::string module = Assemble(kExits7);
  const std::string code = CodeOf(module);
  CodeRun(module, "x").Refused();
  CodeRun(module, std::string(4096, '\0')).Refused();
  CodeRun(module, module).Refused();
  CodeRun(module, code.substr(0, code.size() / 2)).Refused();
}

TEST(CompiledCode, HasToEndWhereItsFileEnds) {
  const std::string module = Assemble(kExits7);
  const std::string code = CodeOf(module);
  for (const int more : {-1, 1}) {
    CodeRun run(module, code);
    run.execute.code_bytes += static_cast<std::uint64_t>(more);
    run.Send();
    EXPECT_FALSE(run.parent().Receive());
    run.parent().ExpectExit(1);
  }
}

}  // namespace
}  // namespace bulkhead::wasm
