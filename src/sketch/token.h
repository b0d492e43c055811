// Names of operations and resources. Unique in the process and never used twice, so that a stale
// token or one of another run names nothing. Any thread.
#pragma once

#include <cstdint>

namespace bulkhead::sketch {

using Token =
    std::uint64_t;  // 0 names nothing; below 2^56, because a result packs a status beside it

Token NextToken();

}  // namespace bulkhead::sketch
