// The functions of the guest contract, bound to a run's operation hub.
#pragma once

#include <bulkhead/result.h>

#include "contract/guest_abi.h"
#include "wasm/guest_program.h"

namespace bulkhead::wasm {

// kModuleRefused with reason "link-error" if the engine will not have it.
Status DefineSketchFunction(wasmtime_linker_t* linker, const contract::Import& import);

// nullptr if the contract has no such function.
const contract::Import* FindSketchFunction(std::string_view module, std::string_view name);

}  // namespace bulkhead::wasm
