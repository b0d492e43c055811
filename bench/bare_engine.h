// The engine with the worker's settings (wasm/engine.h) and nothing else of the product: what a
// guest costs where nobody contains, limits or watches it.
#pragma once

#include <cstdint>
#include <span>

namespace bulkhead::bench {

struct BareSettings {
  bool metered = true;        // count fuel
  bool interruptible = true;  // check the epoch
};

// Milliseconds of one call of _start, threads included, compiling not. The module is of profile
// wasi-threads and imports nothing of WASI. In a session of its own, see InOwnSession. Whatever
// goes wrong ends the program.
double RunBare(std::span<const std::uint8_t> module, const BareSettings& settings);

}  // namespace bulkhead::bench
