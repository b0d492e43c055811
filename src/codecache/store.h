// The cache itself: find, put, sweep. Any thread, and any number of processes on one directory.
#pragma once

#include <bulkhead/code_cache.h>
#include <bulkhead/result.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "codecache/entry.h"
#include "codecache/key.h"

namespace bulkhead::codecache {

struct Lookup {
  std::optional<Code> code;
  bool corrupt = false;  // what had the entry's name was not the entry
  std::string problem;   // one sentence; set if the entry was corrupt or could not be read
};

// Moments of Put, for tests that stop there. Empty in every real run.
enum class PutStep : std::uint8_t { kCreated, kWritten, kRenamed, kSwept };

struct StoreHooks {
  std::function<void(PutStep)> reached;
};

class Store {
 public:
  static Result<Store> Open(const CodeCacheOptions& options, StoreHooks hooks = {});

  const CodeCacheOptions& options() const { return options_; }

  // The whole entry, checked, and marked as used. What is not whole is removed.
  Lookup Find(const Key& key) const;

  // A failure leaves the cache as it was: no room on the disk or for one entry of this size in the
  // cache, no right to write. Then makes room, unless another process does that already.
  Status Put(const Key& key, const Code& code) const;

  // Removes an entry that no engine takes.
  void Remove(const Key& key) const;

  Result<CodeCacheStat> Stat() const;
  Result<CodeCacheSweep> Prune(std::uint64_t bytes) const;
  Result<CodeCacheSweep> Verify() const;

 private:
  Store(CodeCacheOptions options, UniqueFd directory, StoreHooks hooks)
      : options_(std::move(options)), directory_(std::move(directory)), hooks_(std::move(hooks)) {}

  Result<std::vector<std::string>> Names() const;
  void MakeRoom(const std::string& keep) const;
  Result<CodeCacheSweep> Sweep(std::uint64_t bytes_max, const std::string& keep) const;
  std::string Discard(const std::string& name, BorrowedFd opened) const;
  void Reached(PutStep step) const;

  CodeCacheOptions options_;
  UniqueFd directory_;
  StoreHooks hooks_;
};

}  // namespace bulkhead::codecache

namespace bulkhead {

struct CodeCache::Impl {
  codecache::Store store;
};

}  // namespace bulkhead
