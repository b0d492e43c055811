// BH_CHECK: always on, for our own bugs only. Input from a worker, guest, file or network must
// never reach one.
#pragma once

namespace bulkhead::detail {
[[noreturn]] void CheckFailed(const char* expression, const char* file, int line) noexcept;
}  // namespace bulkhead::detail

#define BH_CHECK(expr)                                            \
  do {                                                            \
    if (!(expr)) {                                                \
      ::bulkhead::detail::CheckFailed(#expr, __FILE__, __LINE__); \
    }                                                             \
  } while (false)
