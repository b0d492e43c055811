#include "wasm/link.h"

#include <algorithm>

#include "wasm/engine.h"

namespace bulkhead::wasm {
namespace {

wasm_valtype_t* ValueType(char letter) {
  return letter == 'I' ? wasm_valtype_new_i64() : wasm_valtype_new_i32();
}

wasm_valtype_vec_t ValueTypes(std::string_view letters) {
  wasm_valtype_vec_t types;
  wasm_valtype_vec_new_uninitialized(&types, letters.size());
  std::transform(letters.begin(), letters.end(), types.data, &ValueType);
  return types;
}

FunctionType ParseSignature(std::string_view signature) {
  const std::size_t colon = signature.find(':');
  wasm_valtype_vec_t parameters = ValueTypes(signature.substr(0, colon));
  wasm_valtype_vec_t results = ValueTypes(signature.substr(colon + 1));
  return FunctionType(wasm_functype_new(&parameters, &results));
}

}  // namespace

tl::unexpected<Error> LinkError(std::string message) {
  return Fail(ErrorCode::kModuleRefused, std::move(message), 0, "link-error");
}

Status DefineFunction(wasmtime_linker_t* linker, const FunctionName& name,
                      const HostFunction& function) {
  const FunctionType type = ParseSignature(name.signature);
  const ErrorHandle error(wasmtime_linker_define_func_unchecked(
      linker, name.module.data(), name.module.size(), name.name.data(), name.name.size(),
      type.get(), function.call, function.data, nullptr));
  return error == nullptr ? Status() : LinkError(MessageOf(error.get()));
}

}  // namespace bulkhead::wasm
