#include "wasm/trap.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "worker/run_handler.h"

namespace bulkhead::wasm {
namespace {

struct NamedCode {
  wasmtime_trap_code_t code;
  std::string_view name;
  std::string_view sentence;
};

constexpr std::array kNamedCodes = {
    NamedCode{WASMTIME_TRAP_CODE_STACK_OVERFLOW, "stack-overflow", "the call stack is exhausted"},
    NamedCode{WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS, "memory-out-of-bounds",
              "memory access out of bounds"},
    NamedCode{WASMTIME_TRAP_CODE_HEAP_MISALIGNED, "misaligned-atomic",
              "misaligned atomic memory access"},
    NamedCode{WASMTIME_TRAP_CODE_TABLE_OUT_OF_BOUNDS, "table-out-of-bounds",
              "table access out of bounds"},
    NamedCode{WASMTIME_TRAP_CODE_INDIRECT_CALL_TO_NULL, "indirect-call-to-null",
              "indirect call of an empty table entry"},
    NamedCode{WASMTIME_TRAP_CODE_BAD_SIGNATURE, "bad-signature",
              "indirect call of a function of another type"},
    NamedCode{WASMTIME_TRAP_CODE_INTEGER_OVERFLOW, "integer-overflow", "integer overflow"},
    NamedCode{WASMTIME_TRAP_CODE_INTEGER_DIVISION_BY_ZERO, "integer-division-by-zero",
              "integer division by zero"},
    NamedCode{WASMTIME_TRAP_CODE_BAD_CONVERSION_TO_INTEGER, "bad-conversion-to-integer",
              "conversion of a number that is no integer"},
    NamedCode{WASMTIME_TRAP_CODE_UNREACHABLE_CODE_REACHED, "unreachable",
              "an unreachable instruction was executed"},
    NamedCode{WASMTIME_TRAP_CODE_INTERRUPT, "interrupt", "interrupted"},
    NamedCode{WASMTIME_TRAP_CODE_OUT_OF_FUEL, "out-of-fuel", "all fuel is used up"},
    NamedCode{WASMTIME_TRAP_CODE_ATOMIC_WAIT_NON_SHARED_MEMORY, "atomic-wait-on-unshared-memory",
              "atomic wait on a memory that is not shared"},
    NamedCode{WASMTIME_TRAP_CODE_NULL_REFERENCE, "null-reference", "null reference"},
    NamedCode{WASMTIME_TRAP_CODE_ARRAY_OUT_OF_BOUNDS, "array-out-of-bounds",
              "array access out of bounds"},
    NamedCode{WASMTIME_TRAP_CODE_ALLOCATION_TOO_LARGE, "allocation-too-large",
              "allocation too large"},
    NamedCode{WASMTIME_TRAP_CODE_CAST_FAILURE, "cast-failure",
              "cast to a type the reference does not have"},
    NamedCode{WASMTIME_TRAP_CODE_UNCAUGHT_EXCEPTION, "uncaught-exception", "uncaught exception"},
};
constexpr std::string_view kOtherCode = "other";

// An exception nobody catches arrives as a trap without a code, known by its words alone.
constexpr std::string_view kUncaughtException = "thrown Wasm exception";

// The engine puts its own backtrace in front of what happened.
constexpr std::string_view kCauseMark = "Caused by:";

// Longest part of a guest-chosen function name that is shown.
constexpr std::size_t kFunctionNameBytesMax = 200;

const NamedCode* Find(wasmtime_trap_code_t code) {
  const auto* const found = std::find_if(kNamedCodes.begin(), kNamedCodes.end(),
                                         [code](const NamedCode& c) { return c.code == code; });
  return found == kNamedCodes.end() ? nullptr : found;
}

std::string DescribeFrame(const wasm_frame_t* frame) {
  std::string line = fmt::format("function {}", wasm_frame_func_index(frame));
  if (const wasm_name_t* const name = wasmtime_frame_func_name(frame); name != nullptr) {
    line += " " + Quoted(CutUtf8({name->data, name->size}, kFunctionNameBytesMax));
  }
  return line + fmt::format(" at {:#x}", wasm_frame_module_offset(frame));
}

// Innermost frames first, until the report is full.
std::vector<std::string> DescribeFrames(const FrameVector& frames) {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  const std::size_t count = std::min<std::size_t>(frames.size(), wire::kBacktraceFramesMax);
  for (std::size_t i = 0; i < count; ++i) {
    std::string line = DescribeFrame(frames.at(i));
    bytes += line.size();
    if (bytes > wire::kBacktraceBytesMax) {
      break;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string_view CauseIn(std::string_view message) {
  const std::size_t mark = message.rfind(kCauseMark);
  return mark == std::string_view::npos ? message : message.substr(mark + kCauseMark.size());
}

wire::Terminal::Trap DescribeWithoutCode(std::string_view cause, const FrameVector& frames) {
  wire::Terminal::Trap description;
  const bool uncaught = cause.find(kUncaughtException) != std::string_view::npos;
  description.code = uncaught ? TrapCodeName(WASMTIME_TRAP_CODE_UNCAUGHT_EXCEPTION) : kOtherCode;
  description.message = worker::WireText(cause);
  description.backtrace = DescribeFrames(frames);
  return description;
}

}  // namespace

std::string_view TrapCodeName(wasmtime_trap_code_t code) {
  const NamedCode* const named = Find(code);
  return named == nullptr ? kOtherCode : named->name;
}

std::optional<wasmtime_trap_code_t> TrapCode(const wasm_trap_t* trap) {
  wasmtime_trap_code_t code = 0;
  return wasmtime_trap_code(trap, &code) ? std::optional(code) : std::nullopt;
}

wire::Terminal::Trap DescribeTrap(const wasm_trap_t* trap) {
  FrameVector frames;
  wasm_trap_trace(trap, frames.get());
  const std::optional<wasmtime_trap_code_t> code = TrapCode(trap);
  const NamedCode* const named = code ? Find(*code) : nullptr;
  if (named == nullptr) {
    ByteVector message;
    wasm_trap_message(trap, message.get());
    return DescribeWithoutCode(CauseIn(message.view()), frames);
  }
  wire::Terminal::Trap description;
  description.code = named->name;
  description.message = named->sentence;
  description.backtrace = DescribeFrames(frames);
  return description;
}

wire::Terminal::Trap DescribeError(const wasmtime_error_t* error) {
  FrameVector frames;
  wasmtime_error_wasm_trace(error, frames.get());
  ByteVector message;
  wasmtime_error_message(error, message.get());
  return DescribeWithoutCode(CauseIn(message.view()), frames);
}

}  // namespace bulkhead::wasm
