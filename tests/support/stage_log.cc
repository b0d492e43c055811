#include "support/stage_log.h"

#include <algorithm>
#include <utility>

namespace bulkhead::test {

void StageLog::OnStage(const RunEvent& event) {
  std::function<void(const RunEvent&)> action;
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    if (action_stage_ == event.stage) {
      action_stage_.reset();
      action = std::exchange(action_, nullptr);
    }
  }
  changed_.notify_all();
  if (action) {
    action(event);
  }
}

std::optional<RunEvent> StageLog::WaitFor(Stage stage, std::chrono::seconds bound) {
  std::unique_lock lock(mutex_);
  const auto found = [&] {
    return std::find_if(events_.begin(), events_.end(),
                        [stage](const RunEvent& event) { return event.stage == stage; });
  };
  if (!changed_.wait_for(lock, bound, [&] { return found() != events_.end(); })) {
    return std::nullopt;
  }
  return *found();
}

bool StageLog::WaitForAll(Stage stage, std::ptrdiff_t runs, std::chrono::seconds bound) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, bound, [&] {
    return std::count_if(events_.begin(), events_.end(),
                         [stage](const RunEvent& event) { return event.stage == stage; }) >= runs;
  });
}

void StageLog::At(Stage stage, std::function<void(const RunEvent&)> action) {
  const std::lock_guard lock(mutex_);
  action_stage_ = stage;
  action_ = std::move(action);
}

std::vector<RunEvent> StageLog::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

void StageLog::Clear() {
  const std::lock_guard lock(mutex_);
  events_.clear();
}

}  // namespace bulkhead::test
