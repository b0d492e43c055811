// What a WASI operation comes to: a value, an error number for the guest, or the end of the guest.
#pragma once

#include <cerrno>
#include <utility>

#include <tl/expected.hpp>

#include "wasi/errno.h"
#include "wasi/wasi.h"

namespace bulkhead::wasi {

struct Failure {
  Errno error = Errno::kSuccess;
  Control end = Control::kContinue;  // anything else: the guest does not get to see `error`
};

template <class T>
using Answer = tl::expected<T, Failure>;

inline tl::unexpected<Failure> Refuse(Errno error) {
  return tl::unexpected<Failure>(Failure{error, Control::kContinue});
}

// With the errno the last system call left.
inline tl::unexpected<Failure> RefuseHost() {
  return Refuse(FromHost(errno));
}

inline tl::unexpected<Failure> EndGuest(Control end) {
  return tl::unexpected<Failure>(Failure{Errno::kSuccess, end});
}

namespace detail {

template <class T>
T TakeAnswer(Answer<T>&& answer) {
  return *std::move(answer);
}

inline void TakeAnswer(Answer<void>&& /*answer*/) {}

}  // namespace detail
}  // namespace bulkhead::wasi

// BH_TRY for answers: yields the value or returns the failure from the enclosing function.
#define BH_WASI_TRY(expr)                                                  \
  __extension__({                                                          \
    auto&& bh_answer = (expr);                                             \
    if (!bh_answer) {                                                      \
      return tl::unexpected<::bulkhead::wasi::Failure>(bh_answer.error()); \
    }                                                                      \
    ::bulkhead::wasi::detail::TakeAnswer(std::move(bh_answer));            \
  })
