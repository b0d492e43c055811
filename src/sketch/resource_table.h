// What tokens name beside operations: who made it, who may use it, and for a while what was closed.
// Not thread-safe: under the hub's lock.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "sketch/abi.h"
#include "sketch/blob.h"
#include "sketch/sha256.h"
#include "sketch/token.h"

namespace bulkhead::sketch {

// A resource without a function of its own: it probes the rules of ownership and rights.
struct SyntheticResource {
  std::uint8_t rights = 0;
};

struct OutputHandle {};

struct Resource {
  Owner owner = kRootOwner;
  bool shareable = false;  // other threads may use it too
  bool visible = true;     // not while the operation that creates it waits
  std::variant<SyntheticResource, OutputHandle, std::shared_ptr<Blob>, std::shared_ptr<Sha256>>
      body;

  bool AccessibleTo(Owner caller) const { return owner == caller || shareable; }
};

class ResourceTable {
 public:
  bool full() const { return resources_.size() >= kResourcesMax; }

  std::uint32_t size() const { return static_cast<std::uint32_t>(resources_.size()); }

  std::uint32_t tombstones() const;

  // Not when full.
  Token Add(Resource resource);

  // For the hub itself, whoever owns it. nullptr: no such token.
  Resource* Find(Token token);

  // For a guest thread. nullptr: no such token, not accessible to the caller, or of another type;
  // the guest cannot tell which.
  template <class Body>
  Body* FindFor(Owner caller, Token token) {
    Resource* resource = Find(token);
    if (resource == nullptr || !resource->visible || !resource->AccessibleTo(caller)) {
      return nullptr;
    }
    return std::get_if<Body>(&resource->body);
  }

  // Takes it out and remembers that it was there, if a guest could have known.
  Resource Remove(Token token);
  // Whether the token named something of the caller's that is closed now. Forgotten after
  // kTombstonesMax others.
  bool WasClosed(Owner caller, Token token) const;

  // Any resource that only `owner` may use, or any at all.
  std::optional<Token> FirstOf(Owner owner) const;
  std::optional<Token> First() const;

 private:
  struct Tombstone {
    Token token = 0;
    Owner owner = kRootOwner;
    bool shareable = false;
  };

  std::map<Token, Resource> resources_;
  std::array<Tombstone, kTombstonesMax> tombstones_ = {};  // a ring
  std::uint64_t buried_ = 0;
};

}  // namespace bulkhead::sketch
