// The contract as other languages read it.
#pragma once

#include <string>

namespace bulkhead::contract {

// guest/include/bulkhead_guest_abi.h, C11.
std::string GuestHeader();
// docs/guest-abi.md.
std::string GuestDocument();

}  // namespace bulkhead::contract
