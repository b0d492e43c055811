#include <bulkhead/cancellation.h>

#include <atomic>

#include "base/event_fd.h"

namespace bulkhead {
namespace detail {

class CancelState {
 public:
  explicit CancelState(EventFd event) : event_(std::move(event)) {}

  void Cancel() noexcept {
    cancelled_.store(true, std::memory_order_release);
    event_.Signal();
  }

  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }

  int poll_fd() const noexcept { return event_.fd().get(); }

 private:
  std::atomic<bool> cancelled_{false};
  EventFd event_;
};

static_assert(std::atomic<bool>::is_always_lock_free, "Cancel() must be async-signal-safe");

}  // namespace detail

bool CancelToken::cancelled() const {
  return state_ != nullptr && state_->cancelled();
}

int CancelToken::poll_fd() const {
  return state_ == nullptr ? -1 : state_->poll_fd();
}

Result<CancelSource> CancelSource::Create() {
  EventFd event = BH_TRY(EventFd::Create());
  return CancelSource(std::make_shared<detail::CancelState>(std::move(event)));
}

void CancelSource::Cancel() const noexcept {
  state_->Cancel();
}

}  // namespace bulkhead
