// Faults for tests, injected when a StagingArea is made. All empty in every real run.
#pragma once

#include <functional>

namespace bulkhead::staging {

// Gives the errno to fail with instead of making the call, or 0 to make it.
using Fault = std::function<int()>;

struct StagingHooks {
  // Runs in Commit when the staged file is on disk and nothing is published yet.
  std::function<void()> between_fsync_and_rename;
  Fault fail_sync_file;
  Fault fail_rename;
  Fault fail_sync_directory;
  Fault fail_removal;
};

}  // namespace bulkhead::staging
