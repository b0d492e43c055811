// <bulkhead/code_cache.h>: a handle on a Store.
#include <bulkhead/code_cache.h>

#include "codecache/store.h"

namespace bulkhead {

Result<std::shared_ptr<CodeCache>> CodeCache::Open(const CodeCacheOptions& options) {
  codecache::Store store = BH_TRY(codecache::Store::Open(options));
  auto impl = std::make_unique<const Impl>(Impl{std::move(store)});
  return std::shared_ptr<CodeCache>(new CodeCache(std::move(impl)));
}

CodeCache::CodeCache(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}

CodeCache::~CodeCache() = default;

const std::string& CodeCache::directory() const {
  return impl_->store.options().directory;
}

Result<CodeCacheStat> CodeCache::Stat() const {
  return impl_->store.Stat();
}

Result<CodeCacheSweep> CodeCache::Prune(std::uint64_t bytes) const {
  return impl_->store.Prune(bytes);
}

Result<CodeCacheSweep> CodeCache::Verify() const {
  return impl_->store.Verify();
}

}  // namespace bulkhead
