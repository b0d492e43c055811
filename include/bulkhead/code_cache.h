// Compiled code on disk, found by what it was made from, so that a module is compiled once per
// machine. Given to runs by RuntimeOptions::code_cache.
//
// One file per entry, written beside its place, synced and renamed: a crash at any point leaves a
// whole entry or none. Nothing in it is believed: each use checks an entry's length, key and digest
// through the very descriptor that goes to the worker, and only workers ever load code. Entries of
// another build, processor or setting have other keys and grow old.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bulkhead {

struct CodeCacheOptions {
  // Made with its parents if it is absent, for this user alone.
  std::string directory;
  // Of all entries together; those not used for longest are removed beyond it. At least 1.
  std::uint64_t bytes_max = 1ULL << 30;
};

struct CodeCacheStat {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_max = 0;
};

struct CodeCacheSweep {
  std::uint64_t entries = 0;  // left
  std::uint64_t bytes = 0;
  std::uint64_t removed = 0;
  std::uint64_t removed_bytes = 0;
  std::vector<std::string>
      problems;  // one line each: what was removed for a fault, or could not be
};

// Any thread, and any number of processes on one directory at once.
class CodeCache {
 public:
  // kInvalidArgument: no path, or no room. kIo, kNotFound, kResourceExhausted: the directory cannot
  // be made or opened. kUnsupported: it is somebody else's, or others may write to it; the message
  // says how to mend that.
  static Result<std::shared_ptr<CodeCache>> Open(const CodeCacheOptions& options);

  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;
  ~CodeCache();

  const std::string& directory() const;

  Result<CodeCacheStat> Stat() const;
  // Removes the entries not used for longest until the rest has at most `bytes`, and what writers
  // that died left. Entries in use stay readable for those who use them. Waits for another sweep to
  // end.
  Result<CodeCacheSweep> Prune(std::uint64_t bytes) const;
  // Reads every entry and removes what is not whole. Waits as Prune does.
  Result<CodeCacheSweep> Verify() const;

  struct Impl;

  const Impl& impl() const { return *impl_; }  // for the library itself

 private:
  explicit CodeCache(std::unique_ptr<const Impl> impl);

  std::unique_ptr<const Impl> impl_;
};

}  // namespace bulkhead
