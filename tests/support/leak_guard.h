// The check of one-shot specification 4.7 as one object: made before a test touches the library,
// asked after the last Runtime is gone. Whatever is there now and was not there before is a leak.
#pragma once

#include <bulkhead/snapshot.h>

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/proc_view.h"

namespace bulkhead::test {

class LeakGuard {
 public:
  LeakGuard();

  // Remembers a worker, so that its group and session are looked for as well. 0: there was none.
  void NoteWorker(pid_t pid);

  // Remembers a directory in which no staging may be left.
  void NoteDirectory(const std::string& path) { directories_.insert(path); }

  // One line per thing left: children (zombies too), members of a worker's group or session,
  // descriptors (memory files too), threads, mounts, staging entries, cgroups.
  std::vector<std::string> Leaks() const;

 private:
  void FindProcesses(std::vector<std::string>& leaks) const;
  bool BelongsToWorker(const ProcessView& process, pid_t group_or_session) const;
  void FindDescriptors(std::vector<std::string>& leaks) const;
  void FindStaging(std::vector<std::string>& leaks) const;
  void FindMounts(std::vector<std::string>& leaks) const;

  std::set<pid_t> children_;
  std::map<int, std::string> descriptors_;
  std::size_t threads_;
  std::set<std::string> mounts_;
  std::map<pid_t, std::uint64_t> workers_;  // and when they were noted, in ticks since the boot
  std::set<std::string> directories_;
};

// What section 4.7 says of the counters once no run is active; one line per violation.
std::vector<std::string> LedgerFaults(const Snapshot& snapshot);

}  // namespace bulkhead::test
