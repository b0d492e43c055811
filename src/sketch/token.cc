#include "sketch/token.h"

#include <atomic>

namespace bulkhead::sketch {
namespace {

// Counted for the whole process: at one token a nanosecond 2^56 would last two years.
std::atomic<Token> next_token = 1;

}  // namespace

Token NextToken() {
  return next_token.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace bulkhead::sketch
