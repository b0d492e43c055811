// What a linker does not write into a sketch: the contract's manifest and target features. Pure
// function, any thread.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bulkhead::admission {

struct PackedGuest {
  std::vector<std::uint8_t> bytes;
  std::vector<std::string> dropped;  // names of custom sections the contract does not have
};

// The same module with exactly this version's two sections at its end and without custom sections
// that the contract forbids; all other sections byte for byte. kModuleRefused if the bytes are no
// sequence of sections; whether the result is admitted is another question (admit.h).
Result<PackedGuest> PackGuest(std::span<const std::uint8_t> module);

}  // namespace bulkhead::admission
