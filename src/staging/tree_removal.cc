#include "staging/tree_removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/strings.h"
#include "staging/output_error.h"

namespace bulkhead::staging {
namespace {

struct CloseDirectory {
  void operator()(DIR* stream) const { closedir(stream); }
};

using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// A description of its own, so that the caller's read position does not matter.
Result<DirectoryStream> OpenStream(BorrowedFd directory) {
  UniqueFd fd(openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    return OutputFail("open directory", {}, errno);
  }
  DirectoryStream stream(fdopendir(fd.get()));
  if (stream == nullptr) {
    return OutputFail("read directory", {}, errno);
  }
  static_cast<void>(fd.Release());  // the stream owns it now
  return stream;
}

// One walk over a tree: carries what is left of the entry budget.
class TreeRemover {
 public:
  explicit TreeRemover(dev_t device) : device_(device) {}

  Status RemoveInside(BorrowedFd directory, int depth);

 private:
  Status RemoveEntry(const EntryAt& entry, int depth);

  dev_t device_;
  std::size_t entries_left_ = kRemovalEntriesMax;
};

Status TreeRemover::RemoveInside(BorrowedFd directory, int depth) {
  const Listing listing = BH_TRY(ListNames(directory, {}, entries_left_));
  if (!listing.complete) {
    return Fail(ErrorCode::kOutput,
                fmt::format("staging directory holds more than {} entries", kRemovalEntriesMax));
  }
  entries_left_ -= listing.names.size();
  for (const std::string& name : listing.names) {
    BH_TRY(RemoveEntry({directory, name}, depth));
  }
  return {};
}

Status TreeRemover::RemoveEntry(const EntryAt& entry, int depth) {
  if (unlinkat(entry.directory.get(), entry.name.c_str(), 0) == 0 || errno == ENOENT) {
    return {};
  }
  if (errno != EISDIR) {
    return OutputFail("remove", entry.name, errno);
  }
  if (depth == kRemovalDepthMax) {
    return Fail(ErrorCode::kOutput,
                fmt::format("staging directory is nested deeper than {} levels", kRemovalDepthMax));
  }
  const UniqueFd inner(openat(entry.directory.get(), entry.name.c_str(),
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!inner.valid() || fstat(inner.get(), &status) != 0) {
    return OutputFail("open directory", entry.name, errno);
  }
  if (status.st_dev != device_) {
    return Fail(ErrorCode::kOutput, fmt::format("{} is a mount point", Quoted(entry.name)));
  }
  BH_TRY(RemoveInside(inner.borrow(), depth + 1));
  return RemoveEmptyDirectory(entry, inner.borrow());
}

}  // namespace

bool SameObject(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Result<Listing> ListNames(BorrowedFd directory, std::string_view prefix, std::size_t scanned_max) {
  const DirectoryStream stream = BH_TRY(OpenStream(directory));
  Listing listing;
  for (std::size_t scanned = 0;;) {
    errno = 0;
    const dirent* entry =
        readdir(stream.get());  // NOLINT(concurrency-mt-unsafe): the stream is ours alone
    if (entry == nullptr) {
      if (errno != 0) {
        return OutputFail("read directory", {}, errno);
      }
      return listing;
    }
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") {
      continue;
    }
    if (scanned++ == scanned_max) {
      listing.complete = false;
      return listing;
    }
    if (name.starts_with(prefix)) {
      listing.names.emplace_back(name);
    }
  }
}

Status RemoveContents(BorrowedFd directory) {
  struct stat status{};
  if (fstat(directory.get(), &status) != 0) {
    return OutputFail("stat the staging directory", {}, errno);
  }
  return TreeRemover(status.st_dev).RemoveInside(directory, 0);
}

Status RemoveEmptyDirectory(const EntryAt& entry, BorrowedFd directory) {
  struct stat held{};
  if (fstat(directory.get(), &held) != 0) {
    return OutputFail("stat the staging directory", {}, errno);
  }
  if (held.st_nlink == 0) {
    return {};
  }
  struct stat found{};
  if (fstatat(entry.directory.get(), entry.name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    return OutputFail("find", entry.name, errno);
  }
  if (!SameObject(held, found)) {
    return Fail(
        ErrorCode::kOutput,
        fmt::format("{} is no longer the directory that was created there", Quoted(entry.name)));
  }
  if (unlinkat(entry.directory.get(), entry.name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return OutputFail("remove directory", entry.name, errno);
  }
  return {};
}

}  // namespace bulkhead::staging
