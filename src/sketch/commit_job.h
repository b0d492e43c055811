// Writes the content of a blob into the one file a guest may produce. Runs without the hub's lock
// and asks before each piece whether it still may. The file is the parent's staged file: nobody but
// the parent sees it, and the parent publishes it or not, so a failed job only has to empty it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/unique_fd.h"
#include "sketch/buffer.h"

namespace bulkhead::sketch {

// The guest's permission to produce one file.
struct OutputGrant {
  UniqueFd file;  // open for writing; its position is not used
  std::uint64_t bytes_max = 0;
};

// Called by the job thread without the lock, in tests only: to pause it, or to inject the errno
// that is answered (0: none).
struct CommitHooks {
  std::function<int()> before_write = nullptr;  // each piece
  std::function<int()> before_fsync = nullptr;
  std::function<int()> before_complete = nullptr;
};

struct CommitJob {
  const OutputGrant& grant;
  const CommitHooks& hooks;
  std::function<bool()> authorised;
  // The job is done with a piece; its memory goes back to the account.
  std::function<void(Buffer&)> release;
};

enum class CommitResult : std::uint8_t {
  kWritten,  // complete and on the disk
  kFailed,   // I/O, or no longer authorised
  kTooLarge,
};

// Replaces the file's content.
CommitResult WriteOutput(const CommitJob& job, std::vector<Buffer>& pieces);
// Empties the file after a failure. false: it could not be emptied.
[[nodiscard]] bool DiscardOutput(const OutputGrant& grant);

}  // namespace bulkhead::sketch
