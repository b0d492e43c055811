// Modules of the sketch profile for tests: text around given bodies, and what a linker does not
// write. Header-only, for tests of both towers.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "contract/guest_abi.h"

namespace bulkhead::test {

// Bodies in text format. All functions of the contract can be called, by their names with '$' and
// without dashes: $kernel_yield, $operation_submit, $threadspawn, $proc_exit, ...
struct SketchParts {
  std::string start = {};   // of _start; locals $i i32, $op i64
  std::string thread = {};  // of wasi_thread_start; parameters $id, $argument
  std::string init = {};    // of the start section
  bool operations = false;  // import the operations too
  std::string extra = {};   // fields anywhere in the module
};

inline std::string SketchText(const SketchParts& parts) {
  std::string imports;
  for (const contract::Import& import : contract::Imports()) {
    const bool operation = import.module == contract::kNamespace &&
                           import.function != contract::Function::kKernelYield;
    if (operation && !parts.operations) {
      continue;
    }
    std::string name;
    for (const char c : import.name) {
      name += c == '-' ? "" : std::string(1, c);
    }
    const std::size_t colon = import.signature.find(':');
    std::string type;
    for (const char letter : import.signature.substr(0, colon)) {
      type += letter == 'I' ? " (param i64)" : " (param i32)";
    }
    for (const char letter : import.signature.substr(colon + 1)) {
      type += letter == 'I' ? " (result i64)" : " (result i32)";
    }
    imports += fmt::format("(import \"{}\" \"{}\" (func ${}{}))\n", import.module, import.name,
                           name, type);
  }
  return fmt::format(
      R"((module
        (import "env" "memory" (memory 17 16384 shared))
        {}
        (export "memory" (memory 0))
        (func (export "_start") (local $i i32) (local $op i64) {})
        (func (export "__main_void") (result i32) (i32.const 0))
        (func (export "wasi_thread_start") (param $id i32) (param $argument i32) {})
        (func (export "bulkhead-run") (result i32) (i32.const 0))
        (start $init)
        (func $init {})
        {}))",
      imports, parts.start, parts.thread, parts.init, parts.extra);
}

inline std::string CustomSection(std::string_view name, std::string_view content) {
  const auto leb = [](std::size_t value) {
    std::string bytes;
    for (; value > 0x7F; value >>= 7U) {
      bytes += static_cast<char>(0x80U | (value & 0x7FU));
    }
    return bytes + static_cast<char>(value);
  };
  const std::string payload = leb(name.size()) + std::string(name) + std::string(content);
  return std::string(1, '\0') + leb(payload.size()) + payload;
}

// To be appended to the assembled text.
inline std::string SketchSections() {
  return CustomSection(contract::kFeaturesSection, contract::FeaturesBytes()) +
         CustomSection(contract::kManifestSection, contract::ManifestText());
}

// The fixtures of the specification: empty, exit, trap, loop, wait, cap, fault, startloop,
// starttrap, childloop, twospawn.
inline SketchParts SketchFixture(std::string_view name, int argument = 0) {
  constexpr std::string_view kLoop = "(loop $again (br $again))";
  SketchParts parts;
  if (name == "exit") {
    parts.init = fmt::format("(call $proc_exit (i32.const {}))", argument);
  } else if (name == "trap") {
    parts.start = "unreachable";
  } else if (name == "loop") {
    parts.start = kLoop;
  } else if (name == "wait") {
    parts.start =
        "(call $kernel_yield)"
        "(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))";
  } else if (name == "cap") {
    parts.start =
        "(if (i32.le_s (call $threadspawn (i32.const 0)) (i32.const 0))"
        "  (then (call $proc_exit (i32.const 6))))"
        "(if (i32.ne (call $threadspawn (i32.const 0)) (i32.const -1))"
        "  (then (call $proc_exit (i32.const 7))))";
    parts.thread = "(call $proc_exit (local.get $argument))";
  } else if (name == "fault") {
    parts.init =
        "(i32.store (i32.const 64) (i32.const 42))"
        "(if (i32.ne (call $fd_write (i32.const 1) (i32.const -1) (i32.const 1) (i32.const 64))"
        "  (i32.const 21)) (then unreachable))"
        "(if (i32.ne (i32.load (i32.const 64)) (i32.const 42)) (then unreachable))";
  } else if (name == "startloop") {
    parts.init = kLoop;
  } else if (name == "starttrap") {
    parts.init = "unreachable";
  } else if (name == "childloop") {
    parts.init = "(call $kernel_yield)";
    parts.start = "(drop (call $threadspawn (i32.const 0)))";
    parts.thread = kLoop;
  } else if (name == "twospawn") {
    parts.start =
        "(drop (call $threadspawn (i32.const 0))) (drop (call $threadspawn (i32.const 0)))";
  }
  return parts;
}

}  // namespace bulkhead::test
