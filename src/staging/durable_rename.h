// Giving a finished file its final name, and making that last over a power cut. Stateless; any
// thread. Every failure is kOutput with errno.
#pragma once

#include <bulkhead/result.h>

#include "base/unique_fd.h"
#include "staging/tree_removal.h"

namespace bulkhead::staging {

// Atomically puts `from` in the place of `to`. A symbolic link at `to` is replaced, not followed.
Status RenameReplacing(const EntryAt& from, const EntryAt& to);

// As above, but fails with EEXIST if `to` exists. On file systems that cannot rename so, `to`
// becomes a second name of the file and `from` stays for the caller to remove.
Status RenameNoReplace(const EntryAt& from, const EntryAt& to);

// The second way of RenameNoReplace.
Status LinkNoReplace(const EntryAt& from, const EntryAt& to);

// fsync of a file.
Status SyncFile(BorrowedFd file);

// fsync of a directory's names. Needs read permission on it; an O_PATH handle will do.
Status SyncDirectory(BorrowedFd directory);

}  // namespace bulkhead::staging
