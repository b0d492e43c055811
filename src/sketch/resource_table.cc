#include "sketch/resource_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace bulkhead::sketch {

std::uint32_t ResourceTable::tombstones() const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(buried_, kTombstonesMax));
}

Token ResourceTable::Add(Resource resource) {
  BH_CHECK(!full());
  const Token token = NextToken();
  resources_.emplace(token, std::move(resource));
  return token;
}

Resource* ResourceTable::Find(Token token) {
  const auto found = resources_.find(token);
  return found == resources_.end() ? nullptr : &found->second;
}

Resource ResourceTable::Remove(Token token) {
  auto node = resources_.extract(token);
  BH_CHECK(!node.empty());
  Resource resource = std::move(node.mapped());
  if (resource.visible) {
    tombstones_[buried_++ % kTombstonesMax] = {token, resource.owner, resource.shareable};
  }
  return resource;
}

bool ResourceTable::WasClosed(Owner caller, Token token) const {
  return token != 0 && std::ranges::any_of(tombstones_, [caller, token](const Tombstone& stone) {
           return stone.token == token && (stone.owner == caller || stone.shareable);
         });
}

std::optional<Token> ResourceTable::FirstOf(Owner owner) const {
  const auto found = std::ranges::find_if(resources_, [owner](const auto& entry) {
    return entry.second.owner == owner && !entry.second.shareable;
  });
  return found == resources_.end() ? std::nullopt : std::optional(found->first);
}

std::optional<Token> ResourceTable::First() const {
  return resources_.empty() ? std::nullopt : std::optional(resources_.begin()->first);
}

}  // namespace bulkhead::sketch
