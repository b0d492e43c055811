// The few facts staging needs from /proc. Stateless; any thread.
#pragma once

#include <bulkhead/result.h>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::staging {

struct ProcessStat {
  pid_t pid = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;  // clock ticks from boot to the start of the process
};

// One line of /proc/<pid>/stat. The command name may hold spaces and parentheses.
std::optional<ProcessStat> ParseProcessStat(std::string_view line);

// kNotFound if there is no such process.
Result<ProcessStat> ReadProcessStat(pid_t pid);
Result<ProcessStat> ReadOwnStat();

// The umask, read without setting it: setting it is visible to every thread.
Result<mode_t> ReadUmask();

// Leading hex digits of the kernel's boot id, enough to tell boots and machines apart.
inline constexpr std::size_t kBootIdDigits = 16;
Result<std::string> ReadBootId();

// Identity of this process's pid namespace, unique while the namespace lives.
Result<std::uint64_t> ReadPidNamespace();

}  // namespace bulkhead::staging
