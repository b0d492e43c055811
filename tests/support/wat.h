// WebAssembly text -> bytes, with wat2wasm of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::test {

bool HaveWat2Wasm();

// Text given directly. Fails the test and returns nothing if it does not translate.
std::vector<std::uint8_t> AssembleText(std::string_view text);
// A file of tests/wasm, "spin" for tests/wasm/spin.wat.
std::vector<std::uint8_t> AssembleFile(std::string_view name);

}  // namespace bulkhead::test
