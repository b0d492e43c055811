// What the engine says about a guest that went wrong, made fit for a report: stable code names,
// bounded backtraces.
#pragma once

#include <optional>
#include <string_view>

#include "wasm/handles.h"
#include "wire/messages.h"

namespace bulkhead::wasm {

// "unreachable", "memory-out-of-bounds", ...; "other" for codes of features that are not in use.
std::string_view TrapCodeName(wasmtime_trap_code_t code);

// The code behind a trap, if it has one.
std::optional<wasmtime_trap_code_t> TrapCode(const wasm_trap_t* trap);

// Function names in it are chosen by the guest: untrusted text, quoted.
wire::Terminal::Trap DescribeTrap(const wasm_trap_t* trap);
wire::Terminal::Trap DescribeError(const wasmtime_error_t* error);

}  // namespace bulkhead::wasm
