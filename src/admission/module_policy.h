// What a well-formed module is (its profile) and whether the policy lets it in. Pure functions, any
// thread.
#pragma once

#include <bulkhead/module.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "admission/wasm_scan.h"

namespace bulkhead::admission {

// The ceiling that holds under `bytes_max`: the transport has one of its own.
std::uint64_t ModuleBytesLimit(std::uint64_t bytes_max);
// kModuleRefused with reason "module-too-large" and both numbers when `bytes` is above that.
Status CheckModuleBytes(std::uint64_t bytes, std::uint64_t bytes_max);

// sketch: imports from the contract's namespace or has its manifest section. wasi-threads: imports
// a shared memory or wasi.thread-spawn, or exports the function wasi_thread_start. wasi: everything
// else. The first that fits.
Profile DetectProfile(const Scan& scan);

// All refusals in this order:
//  1. memories, in every profile: memory64, unsupported-memory-page-size,
//     shared-memory-without-maximum, memory-initial-exceeds-maximum, defined-shared-memory; then,
//     but for sketches, memory-exceeds-policy
//  2. profile-mismatch
//  3. what the profile has against it (policy_checker.h)
std::vector<Refusal> CheckPolicy(const Scan& scan, const ModulePolicy& policy);

}  // namespace bulkhead::admission
