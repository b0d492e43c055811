// Events for logs and metrics. The library never logs by itself.
#pragma once

#include <bulkhead/outcome.h>

#include <cstdint>
#include <string>

namespace bulkhead {

enum class Stage : std::uint8_t {
  kAdmit,
  kLaunch,
  kHandshake,
  kHandOver,
  kCompile,
  kExecute,
  kStop,
  kReap,  // it has reported, or is to be killed: until it is gone
  kPublish,
  kDone,
};

inline constexpr std::size_t kStageCount = static_cast<std::size_t>(Stage::kDone) + 1;

// "admit", "launch", "handshake", "hand-over", "compile", "execute", "stop", "reap", "publish",
// "done".
std::string_view StageName(Stage stage);

struct RunEvent {
  std::uint64_t run_id = 0;  // unique within the process
  Stage stage = Stage::kAdmit;
  int worker_pid = 0;  // 0 before the launch
};

// Called on the run's own thread, in order, between its system calls: return quickly, never call
// back into the run.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual void OnStage(const RunEvent& event) = 0;
};

}  // namespace bulkhead
