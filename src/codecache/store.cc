#include "codecache/store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/directory_names.h"
#include "base/errno_error.h"
#include "codecache/directory.h"

namespace bulkhead::codecache {
namespace {

constexpr std::size_t kProblemsMax = 100;  // of one sweep; more say nothing new

struct Entry {
  std::string name;
  timespec used{};
  std::uint64_t bytes = 0;
};

bool UsedEarlier(const Entry& a, const Entry& b) {
  const auto order = [](const Entry& e) {
    return std::tuple(e.used.tv_sec, e.used.tv_nsec, std::string_view(e.name));
  };
  return order(a) < order(b);
}

// FIFOs must not make anybody wait, and links lead nowhere.
UniqueFd OpenEntry(BorrowedFd directory, const std::string& name) {
  return UniqueFd(openat(directory.get(), name.c_str(),
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}

// Does this errno of open(2) tell of the entry, and not of the machine?
bool IsFaultOfEntry(int sys_errno) {
  return sys_errno == ELOOP || sys_errno == ENXIO || sys_errno == EACCES;
}

// The file's own time, so that no clock is read; the kernel writes it to the disk now and then. A
// cache on a file system that is read-only goes on without the order of use.
void NoteUse(BorrowedFd file) {
  const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  (void)futimens(file.get(), times);
}

std::vector<Entry> Entries(BorrowedFd directory, const std::vector<std::string>& names) {
  std::vector<Entry> entries;
  for (const std::string& name : names) {
    struct stat status{};
    if (IsKeyText(name) &&
        fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      entries.push_back({name, status.st_mtim, static_cast<std::uint64_t>(status.st_size)});
    }
  }
  return entries;
}

std::uint64_t TotalBytes(const std::vector<Entry>& entries) {
  std::uint64_t total = 0;
  for (const Entry& entry : entries) {
    total += entry.bytes;
  }
  return total;
}

// Beyond such a limit a write would kill the host with SIGXFSZ.
Status CheckFileSizeLimit(std::uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
    return Fail(
        ErrorCode::kResourceExhausted,
        fmt::format("{} bytes are more than this process may write to a file (ulimit -f)", bytes));
  }
  return {};
}

Status UnlinkAt(BorrowedFd directory, const std::string& name) {
  if (unlinkat(directory.get(), name.c_str(), 0) == 0 || errno == ENOENT ||
      (errno == EISDIR && unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) == 0)) {
    return {};
  }
  return Fail(ErrnoError("remove", name, errno));
}

Key KeyNamed(std::string_view text) {
  Key key;
  for (std::size_t i = 0; i < key.digest.size(); ++i) {
    std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, key.digest[i], 16);
  }
  return key;
}

void Note(CodeCacheSweep& sweep, std::string problem) {
  if (sweep.problems.size() < kProblemsMax) {
    sweep.problems.push_back(std::move(problem));
  }
}

}  // namespace

Result<Store> Store::Open(const CodeCacheOptions& options, StoreHooks hooks) {
  if (options.bytes_max == 0) {
    return Fail(ErrorCode::kInvalidArgument, "a code cache of 0 bytes: at least 1 is accepted");
  }
  return Store(options, BH_TRY_CONTEXT(OpenDirectory(options.directory), "code cache"),
               std::move(hooks));
}

Lookup Store::Find(const Key& key) const {
  const std::string name = key.Text();
  UniqueFd file = OpenEntry(directory_.borrow(), name);
  if (!file.valid() && errno == ENOENT) {
    return {};
  }
  if (!file.valid() && !IsFaultOfEntry(errno)) {
    return {{}, false, ErrnoError("open cache entry", name, errno).message};
  }
  const Result<std::uint64_t> bytes =
      file.valid() ? CheckEntry(file.borrow(), key)
                   : Fail(ErrorCode::kUnsupported, fmt::format("open: {}", ErrnoText(errno)));
  if (bytes) {
    NoteUse(file.borrow());
    return {Code{std::move(file), kHeaderBytes, *bytes}, false, {}};
  }
  if (bytes.error().code != ErrorCode::kUnsupported) {
    return {{}, false, bytes.error().message};
  }
  return {{},
          true,
          fmt::format("the cache entry was not used: {}; {}", bytes.error().message,
                      Discard(name, file.borrow()))};
}

Status Store::Put(const Key& key, const Code& code) const {
  const std::uint64_t bytes = kHeaderBytes + code.bytes;
  if (bytes > options_.bytes_max) {
    return Fail(
        ErrorCode::kResourceExhausted,
        fmt::format("{} bytes do not fit into a cache of {} bytes", bytes, options_.bytes_max));
  }
  BH_TRY(CheckFileSizeLimit(bytes));
  NewFile file = BH_TRY(NewFile::Create(directory_.borrow()));
  Reached(PutStep::kCreated);
  BH_TRY(WriteEntry(file.file(), key, code));
  Reached(PutStep::kWritten);
  // The directory is not synced: after a power cut the entry may be absent, never half.
  BH_TRY(file.RenameTo(key.Text()));
  Reached(PutStep::kRenamed);
  MakeRoom(key.Text());
  Reached(PutStep::kSwept);
  return {};
}

void Store::Remove(const Key& key) const {
  (void)UnlinkAt(directory_.borrow(), key.Text());
}

// Whoever holds the lock sweeps just now; the next Put sees to what came meanwhile.
void Store::MakeRoom(const std::string& keep) const {
  const auto lock = TryLockForSweep(directory_.borrow());
  if (lock && *lock) {
    (void)Sweep(options_.bytes_max, keep);
  }
}

Result<std::vector<std::string>> Store::Names() const {
  return NamesIn(directory_.borrow(), ".", "code cache");
}

Result<CodeCacheStat> Store::Stat() const {
  const std::vector<Entry> entries = Entries(directory_.borrow(), BH_TRY(Names()));
  return CodeCacheStat{entries.size(), TotalBytes(entries), options_.bytes_max};
}

Result<CodeCacheSweep> Store::Prune(std::uint64_t bytes) const {
  const UniqueFd lock = BH_TRY(LockForSweep(directory_.borrow()));
  return Sweep(bytes, {});
}

// An entry that is used meanwhile lives on for whoever has it open.
Result<CodeCacheSweep> Store::Sweep(std::uint64_t bytes_max, const std::string& keep) const {
  const std::vector<std::string> names = BH_TRY(Names());
  for (const std::string& name : names) {
    if (IsNewFileName(name)) {
      RemoveIfAbandoned(directory_.borrow(), name);
    }
  }
  std::vector<Entry> entries = Entries(directory_.borrow(), names);
  std::sort(entries.begin(), entries.end(), UsedEarlier);
  CodeCacheSweep sweep;
  sweep.entries = entries.size();
  sweep.bytes = TotalBytes(entries);
  for (const Entry& entry : entries) {
    if (sweep.bytes <= bytes_max) {
      break;
    }
    if (entry.name == keep) {
      continue;  // the newest, whatever the clock says
    }
    if (const Status removed = UnlinkAt(directory_.borrow(), entry.name); !removed) {
      Note(sweep, removed.error().message);
      continue;
    }
    --sweep.entries;
    sweep.bytes -= entry.bytes;
    ++sweep.removed;
    sweep.removed_bytes += entry.bytes;
  }
  return sweep;
}

Result<CodeCacheSweep> Store::Verify() const {
  const UniqueFd lock = BH_TRY(LockForSweep(directory_.borrow()));
  CodeCacheSweep before = BH_TRY(Sweep(~0ULL, {}));
  CodeCacheSweep sweep;
  for (const Entry& entry : Entries(directory_.borrow(), BH_TRY(Names()))) {
    const UniqueFd file = OpenEntry(directory_.borrow(), entry.name);
    if (!file.valid() && errno == ENOENT) {
      continue;
    }
    const Result<std::uint64_t> checked =
        file.valid() ? CheckEntry(file.borrow(), KeyNamed(entry.name))
                     : Fail(ErrorCode::kUnsupported, fmt::format("open: {}", ErrnoText(errno)));
    if (checked) {
      ++sweep.entries;
      sweep.bytes += entry.bytes;
      continue;
    }
    Note(sweep, fmt::format("{}: {}; {}", entry.name, checked.error().message,
                            Discard(entry.name, file.borrow())));
    ++sweep.removed;
    sweep.removed_bytes += entry.bytes;
  }
  return sweep;
}

// Says what became of it. Another process may have put a whole entry in its place meanwhile.
std::string Store::Discard(const std::string& name, BorrowedFd opened) const {
  struct stat seen{};
  struct stat named{};
  if (opened.valid() && fstat(opened.get(), &seen) == 0 &&
      fstatat(directory_.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      (seen.st_dev != named.st_dev || seen.st_ino != named.st_ino)) {
    return "another has taken its place";
  }
  const Status removed = UnlinkAt(directory_.borrow(), name);
  return removed
             ? "it was removed"
             : fmt::format("it could not be removed ({})", ErrnoText(removed.error().sys_errno));
}

void Store::Reached(PutStep step) const {
  if (hooks_.reached) {
    hooks_.reached(step);
  }
}

}  // namespace bulkhead::codecache
