// Observer that remembers every event and lets a test wait for one, or act at one.
#pragma once

#include <bulkhead/observer.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace bulkhead::test {

// Any thread.
class StageLog final : public Observer {
 public:
  void OnStage(const RunEvent& event) override;

  // Waits until some run has reached the stage.
  std::optional<RunEvent> WaitFor(Stage stage,
                                  std::chrono::seconds bound = std::chrono::seconds(30));
  // Waits until that many runs have reached the stage.
  bool WaitForAll(Stage stage, std::ptrdiff_t runs,
                  std::chrono::seconds bound = std::chrono::seconds(30));
  // Runs `action` on the run's own thread at its first event of the stage. Set before the run
  // starts.
  void At(Stage stage, std::function<void(const RunEvent&)> action);
  std::vector<RunEvent> events() const;
  // Forgets the events so far.
  void Clear();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RunEvent> events_;
  std::optional<Stage> action_stage_;
  std::function<void(const RunEvent&)> action_;
};

}  // namespace bulkhead::test
