// What /proc says about a process: identity, state, memory. Pure parsers, and readers that answer
// for one moment. Any thread.
#pragma once

#include <bulkhead/result.h>

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace bulkhead {

// (pid, start time) names a process exactly: start time is field 22 of /proc/<pid>/stat, in clock
// ticks since boot.
struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_time = 0;

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// The fields of /proc/<pid>/stat that are used here.
struct ProcStat {
  pid_t pid = 0;
  char state = '?';  // R, S, D, T, t, Z, X, I
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::uint64_t thread_count = 0;
  std::uint64_t start_time = 0;

  ProcessIdentity identity() const { return {pid, start_time}; }

  bool stopped() const { return state == 'T' || state == 't'; }

  // Whole process dead: its main thread may be a zombie while other threads still run.
  bool dead() const { return state == 'X' || (state == 'Z' && thread_count <= 1); }
};

// From /proc/<pid>/status; zeros for a zombie, which has no memory any more.
struct MemoryUse {
  std::uint64_t rss_bytes = 0;
  std::uint64_t rss_bytes_peak = 0;
  std::uint64_t data_bytes = 0;           // what RLIMIT_DATA is compared with, touched or not
  std::uint64_t anonymous_rss_bytes = 0;  // resident, and of no file
};

// A program's name may contain spaces and parentheses: fields are counted from behind the last ')'.
Result<ProcStat> ParseProcStat(std::string_view line);
Result<MemoryUse> ParseMemoryUse(std::string_view status);

// kNotFound if there is no such process.
Result<ProcStat> ReadProcStat(pid_t pid);
// Of this process, with the pid that the mounted /proc knows it by.
Result<ProcStat> ReadOwnProcStat();
Result<MemoryUse> ReadMemoryUse(pid_t pid);
Result<ProcessIdentity> IdentityOf(pid_t pid);

// Exactly this process exists and is more than a zombie. False also if /proc cannot be read.
bool Alive(const ProcessIdentity& identity);

}  // namespace bulkhead
