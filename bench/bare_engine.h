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

// One call of _start, threads included, compiling not, in a session of its own (InOwnSession). The
// module is of profile wasi-threads and imports nothing of WASI. Whatever goes wrong ends the
// program.
double BareElapsedMs(std::span<const std::uint8_t> module, const BareSettings& settings);
double BareCpuMs(std::span<const std::uint8_t> module, const BareSettings& settings);

}  // namespace bulkhead::bench
