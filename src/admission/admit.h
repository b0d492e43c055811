// The verdict over module bytes: size, form, structure, policy. Pure functions, any thread.
#pragma once

#include <bulkhead/module.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace bulkhead::admission {

// Entries of each list in ModuleInfo; more are counted, not listed.
inline constexpr std::size_t kListedMax = 1'000;
// Bytes of a name in ModuleInfo.
inline constexpr std::size_t kListedNameBytesMax = 96;

// Leading blanks and comments of a text module that are looked at: no licence text is longer.
inline constexpr std::size_t kTextLookBytesMax = std::size_t{1} << 20;

// Whether the bytes can be the beginning of a text module: blanks and comments, then "(".
bool LooksLikeText(std::span<const std::uint8_t> bytes);

// Refusals come in this order; a stage that refuses ends the look.
//  1. empty-module, text-module, module-too-large
//  2. what ScanModule refuses (wasm_scan.h): one at most
//  3. what CheckPolicy refuses (module_policy.h): all
Inspection InspectBytes(std::span<const std::uint8_t> bytes, const ModulePolicy& policy);

}  // namespace bulkhead::admission
