// Runs a program with every system call in view, its own and those of all it starts, and can make
// one of them fail.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::test {

// read(2) and write(2) on an eventfd(2) are calls of their own: those cannot fail as others do.
inline constexpr long kOnEvent = 10'000;

// One place in the course of a program: the same in every start.
struct CallSite {
  // Program and thread, by the order in which they were started: "fault_host", "fault_host.2" for
  // its second thread, "fault_host-child" before it executes, "bulkhead-wasm-worker#2" for the
  // second of that name.
  std::string role;
  long call = -1;
  int ordinal = 0;  // among the role's calls of this number

  friend auto operator<=>(const CallSite&, const CallSite&) = default;
};

struct CallFault {
  CallSite site;
  int sys_errno = 0;
  bool takes_effect = false;  // the kernel does it, and the program is told that it failed
};

struct TracedRun {
  std::vector<CallSite> sites;    // in the order of entry, while the program's window was open
  bool hit = false;               // the fault was injected
  bool hung = false;              // ended by the tracer
  std::optional<int> exit;        // exit code, or minus the signal
  std::vector<std::string> left;  // roles of processes that outlived the program
  std::string out;                // its standard output
  std::string err;
};

// `words[0]` is a path. One at a time; the calling thread must have no other children. Whatever the
// program started is gone afterwards.
TracedRun TraceCalls(const std::vector<std::string>& words, const std::optional<CallFault>& fault);

}  // namespace bulkhead::test
