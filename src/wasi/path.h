// Paths from a guest: checked once, then resolved by the kernel beneath a directory and nowhere
// else.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "wasi/answer.h"

namespace bulkhead::wasi {

// The longest path the kernel takes, without its NUL.
inline constexpr std::uint32_t kPathBytesMax = 4095;

// Directory operations take paths for which this holds. kNametoolong; kInval for a NUL; kIlseq for
// what is not UTF-8; kNoent for the empty path; kNotcapable for an absolute one.
Answer<void> CheckPath(const std::string& path);
bool IsUtf8(std::string_view text);

// openat2(2) that never leaves `dir`: no "..", link or magic link leads out (kNotcapable if one
// tries). `flags` are open(2)'s; O_CLOEXEC, O_NOCTTY and O_NONBLOCK are added, so that opening
// never waits for a pipe's other end and never takes a terminal. `mode` is for O_CREAT.
Answer<UniqueFd> OpenBeneath(BorrowedFd dir, const std::string& path, int flags, unsigned mode = 0);

// A directory entry for the *at calls that change one: they get a parent that was opened beneath
// and a single name that they do not follow. A trailing slash stays on the name, for the kernel to
// judge.
class EntryName {
 public:
  // `if_dots` is the error for a path that ends in "." or "..", which is no entry that could be
  // changed; what is wrong with the path itself comes first.
  static Answer<EntryName> Resolve(BorrowedFd dir, const std::string& path, Errno if_dots);

  BorrowedFd parent() const { return opened_.valid() ? opened_.borrow() : dir_; }

  const char* name() const { return name_.c_str(); }

  bool has_trailing_slash() const { return name_.ends_with('/'); }

 private:
  EntryName(BorrowedFd dir, UniqueFd opened, std::string name)
      : dir_(dir), opened_(std::move(opened)), name_(std::move(name)) {}

  BorrowedFd dir_;
  UniqueFd opened_;  // invalid: the entry is in the directory itself
  std::string name_;
};

}  // namespace bulkhead::wasi
