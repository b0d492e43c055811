// What /proc says, read independently of the code under test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::test {

struct ProcessView {
  pid_t pid = 0;
  std::string name;
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::uint64_t start_time = 0;

  bool zombie() const { return state == 'Z' || state == 'X'; }
};

std::optional<ProcessView> ViewProcess(pid_t pid);
std::vector<ProcessView> AllProcesses();
std::vector<pid_t> ChildrenOf(pid_t parent);

// Is this very process, not a later one with its number, still running? A zombie is not.
bool StillRuns(pid_t pid, std::uint64_t start_time);

// Number of threads of this process.
std::size_t ThreadCount();

// What each open descriptor of this process refers to.
std::map<int, std::string> OpenDescriptors();

// Looks again and again until the condition holds or the time is up. For states of the system that
// have no event to wait for; never a substitute for one.
bool Eventually(std::chrono::milliseconds bound, const std::function<bool()>& condition);

// Every process that inherited the lock file "alive" in `directory` is gone
// (tests/workers/support/worker_end.h).
bool NobodyHoldsAliveLock(const std::string& directory);

}  // namespace bulkhead::test
