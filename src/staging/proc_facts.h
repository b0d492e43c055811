// The few facts staging needs from /proc. Stateless; any thread.
#pragma once

#include <bulkhead/result.h>

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace bulkhead::staging {

// The umask, read without setting it: setting it is visible to every thread.
Result<mode_t> ReadUmask();

// Leading hex digits of the kernel's boot id, enough to tell boots and machines apart.
inline constexpr std::size_t kBootIdDigits = 16;
Result<std::string> ReadBootId();

// Identity of this process's pid namespace, unique while the namespace lives.
Result<std::uint64_t> ReadPidNamespace();

}  // namespace bulkhead::staging
