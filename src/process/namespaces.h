// The namespaces a worker's tree lives in: which can be had on this machine, and how.
#pragma once

#include <bulkhead/error.h>

#include <cstdint>
#include <mutex>
#include <string>

#include "process/worker_process.h"

namespace bulkhead::process {

// pid, mount, network, ipc and uts namespaces come all together or not at all.
enum class NamespaceMode : std::uint8_t {
  kDirect,   // this process has the right to make them
  kOwnUser,  // a user namespace of the worker's own, in which it has that right, comes with them
  kNone,
};

// CLONE_NEW* flags.
std::uint64_t CloneFlags(NamespaceMode mode);

// Without the reason for having none.
OuterWalls WallsOf(NamespaceMode mode);

// Finds the best mode that works by trying, and remembers it. A failure counts as a missing feature
// only until a mode has worked once. Any thread.
class NamespaceLadder {
 public:
  NamespaceMode mode() const;
  // What the last better mode failed with; empty while the best is in use.
  std::string why() const;

  // A worker started in `mode`.
  void MarkProven(NamespaceMode mode);
  // Starting in `mode` failed. True: try again in the mode that is best now.
  bool StepDown(NamespaceMode mode, const Error& error);

 private:
  mutable std::mutex mutex_;  // guards everything below
  NamespaceMode mode_ = NamespaceMode::kDirect;
  bool proven_ = false;
  std::string why_;
};

}  // namespace bulkhead::process
