// Functions and memories of the host, made known to the engine's linker.
#pragma once

#include <bulkhead/result.h>

#include <string>
#include <string_view>

#include "wasm/handles.h"

namespace bulkhead::wasm {

struct FunctionName {
  std::string_view module;
  std::string_view name;
  std::string_view signature;  // parameters, ':', result; 'i' is i32, 'I' is i64
};

struct HostFunction {
  wasmtime_func_unchecked_callback_t call;
  void* data;
};

// kModuleRefused, reason "link-error".
tl::unexpected<Error> LinkError(std::string message);
Status DefineFunction(wasmtime_linker_t* linker, const FunctionName& name,
                      const HostFunction& function);

}  // namespace bulkhead::wasm
