// What a worker may do because of who it is: users, groups and capabilities.
#pragma once

#include <bulkhead/result.h>

#include <string>
#include <vector>

namespace bulkhead::worker {

struct PrivilegesRequest {
  // Leave the user that started the worker, and all its groups, for one that owns nothing.
  bool become_nobody = false;
  // Keep what root needs to reach files of other users: for granted directories. Nobody else has
  // it.
  bool keep_file_rights = false;
};

// Returns the mechanisms obtained: "unprivileged-user" (not where the namespace knows no such
// user), and "no-capabilities" or "file-capabilities-only". kLaunch with reason "capabilities" or
// "unprivileged-user". Call before other threads exist; not dumpable has to be set afterwards.
Result<std::vector<std::string>> GiveUpPrivileges(const PrivilegesRequest& request);

}  // namespace bulkhead::worker
