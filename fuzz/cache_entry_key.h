// The entry that the fuzz target of the cache asks for.
#pragma once

#include "codecache/key.h"

namespace bulkhead::fuzz {

inline codecache::Key EntryKey() {
  return codecache::KeyOf({.module_sha256 = "m", .engine = "e", .settings = "s", .processor = "p"});
}

}  // namespace bulkhead::fuzz
