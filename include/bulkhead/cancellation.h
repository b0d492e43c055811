// Cancellation is level-triggered and sticky: once cancelled, for ever cancelled.
#pragma once

#include <bulkhead/result.h>

#include <memory>

namespace bulkhead {

namespace detail {
class CancelState;
}  // namespace detail

// The reading end. Copyable; a default-made token is never cancelled. Any thread.
class CancelToken {
 public:
  CancelToken() = default;

  bool cancelled() const;

  // A descriptor that polls readable from the moment of cancellation on; -1 for a default-made
  // token. Owned by the token's source; never read from it, never close it.
  int poll_fd() const;

 private:
  friend class CancelSource;

  explicit CancelToken(std::shared_ptr<detail::CancelState> state) : state_(std::move(state)) {}

  std::shared_ptr<detail::CancelState> state_;
};

// The writing end. Copyable handle to shared state.
class CancelSource {
 public:
  // Fails only when no descriptor is left (kResourceExhausted).
  static Result<CancelSource> Create();

  // Any thread, any number of times, also from a signal handler (one write(2), errno preserved).
  void Cancel() const noexcept;

  CancelToken token() const { return CancelToken(state_); }

 private:
  explicit CancelSource(std::shared_ptr<detail::CancelState> state) : state_(std::move(state)) {}

  std::shared_ptr<detail::CancelState> state_;
};

}  // namespace bulkhead
