// Copies between host memory and guest memory that other guest threads read and write meanwhile.
// An ordinary memcpy would be a data race; here every access to the shared side is a relaxed atomic
// of one byte or one aligned word. Nothing is ordered and a concurrent writer's bytes may arrive
// torn: that is the guest's own race, and it stays inside its bytes. Any thread; never fails.
#pragma once

#include <cstdint>
#include <span>

namespace bulkhead::sketch {

void CopyFromShared(std::span<std::uint8_t> to, const std::uint8_t* shared_from);
void CopyToShared(std::uint8_t* shared_to, std::span<const std::uint8_t> from);

}  // namespace bulkhead::sketch
