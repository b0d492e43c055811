// Result<T>: a value or an Error. Status: success or an Error.
//
//   Result<int> Twice() { int n = BH_TRY(ReadNumber()); return 2 * n; }
//
// BH_TRY yields the value or returns the error from the enclosing function.
// BH_TRY_CONTEXT(expr, "starting worker") also prefixes the message; add context once, where
// knowledge is.
#pragma once

#include <bulkhead/error.h>

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace bulkhead {

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// Shorthand for a failed Result: `return Fail(ErrorCode::kIo, "...");`
inline tl::unexpected<Error> Fail(ErrorCode code, std::string message, int sys_errno = 0,
                                  std::string reason = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), sys_errno, std::move(reason)});
}

inline tl::unexpected<Error> Fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

namespace detail {

template <class T>
T TakeValue(Result<T>&& result) {
  return *std::move(result);
}

inline void TakeValue(Result<void>&& /*result*/) {}

inline Error WithContext(Error error, std::string_view context) {
  error.message = std::string(context) + ": " + error.message;
  return error;
}

}  // namespace detail
}  // namespace bulkhead

#define BH_TRY(expr)                                         \
  __extension__({                                            \
    auto&& bh_result = (expr);                               \
    if (!bh_result) {                                        \
      return ::bulkhead::Fail(std::move(bh_result).error()); \
    }                                                        \
    ::bulkhead::detail::TakeValue(std::move(bh_result));     \
  })

#define BH_TRY_CONTEXT(expr, context)                                                \
  __extension__({                                                                    \
    auto&& bh_result = (expr);                                                       \
    if (!bh_result) {                                                                \
      return ::bulkhead::Fail(                                                       \
          ::bulkhead::detail::WithContext(std::move(bh_result).error(), (context))); \
    }                                                                                \
    ::bulkhead::detail::TakeValue(std::move(bh_result));                             \
  })
