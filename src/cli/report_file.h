// Where --report goes, and other files of the command's own: a regular file is replaced as a whole
// (written beside it, synced, renamed), a device, a FIFO and a path of an open descriptor
// (/dev/stderr, /dev/fd/N) are written to, "-" is standard error. A symbolic link is followed.
// Nothing is created before the text is there.
#pragma once

#include <bulkhead/result.h>

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace bulkhead::cli {

class ReportDestination {
 public:
  // Looks whether a report could be written; kOutput with a sentence that names the path if not.
  static Result<ReportDestination> Resolve(const std::string& path);

  // kOutput with a sentence; a destination that was replaceable is then unchanged.
  Status Write(std::string_view text) const;

 private:
  enum class Kind { kDescriptor, kSpecialFile, kRegularFile };

  static Result<ReportDestination> ResolveDescriptor(const std::string& path, int fd);
  static Result<ReportDestination> ResolveFile(const std::string& path, const std::string& target);

  Status WriteSpecial(std::string_view text) const;
  Status Replace(std::string_view text) const;

  Kind kind_ = Kind::kDescriptor;
  std::string shown_;  // as given, for messages
  std::string directory_;
  std::string leaf_;
  BorrowedFd fd_;
};

}  // namespace bulkhead::cli
