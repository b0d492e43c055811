#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace bulkhead::detail {

void CheckFailed(const char* expression, const char* file, int line) noexcept {
  (void)std::fprintf(stderr, "bulkhead: bug: %s:%d: %s\n", file, line, expression);
  std::abort();
}

}  // namespace bulkhead::detail
