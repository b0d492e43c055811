// What the machine itself charges, measured in the same run: the denominators of the ratios.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bulkhead::bench {

using Ms = std::chrono::duration<double, std::milli>;

struct Series {
  double median = 0;
  double p95 = 0;
};

// Calls `measure` (which returns milliseconds, or whatever the figure is) `count` times.
Series Repeat(int count, const std::function<double()>& measure);

struct Comparison {
  double figure = 0;
  double baseline = 0;
  double ratio = 0;  // the median of the rounds' ratios
};

// Medians of `count` rounds. Each round measures both, one after the other, so that whatever else
// the machine does meanwhile slows both down; which comes first alternates.
Comparison Compare(int count, const std::function<double()>& figure,
                   const std::function<double()>& baseline);

// Spawns a program (its path, then its arguments) and reaps it, nothing else.
double SpawnAndReap(std::vector<std::string> command);

// What `measure` says in a process and a session of its own: as a worker has them, and the
// scheduler shares a busy machine out between sessions. Ends the program if there is no answer.
double InOwnSession(const std::function<double()>& measure);

// By how many milliseconds a thread oversleeps one of `sleep` on average; `count` of them.
double Oversleep(int count, std::chrono::milliseconds sleep);

// SIGKILL to the exit of a process, nothing else.
double KillToExit(int pid);

// MiB per second from a writer process through two pipes and one relaying process (read and write
// of 64 KiB) into a reader.
double TwoPipeRelay(std::uint64_t bytes);

struct SelfUse {
  double cpu_ms = 0;
  std::uint64_t wake_ups = 0;  // voluntary context switches of all threads, ended ones included
  std::uint64_t rss_bytes = 0;
};

SelfUse ReadSelfUse();

}  // namespace bulkhead::bench
