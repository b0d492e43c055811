// The threads a guest starts: who may, how many at once, with how much fuel, and their end.
//
// Any thread may call any member. A group that still has live threads is never destroyed: the
// process ends first.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "wire/messages.h"

namespace bulkhead::wasm {

// What a new thread gets.
struct ThreadStart {
  std::uint32_t thread = 0;   // its identity for the guest; 0 is the one that began
  std::int32_t argument = 0;  // what the guest wants to tell it
  std::uint64_t fuel = 0;     // 0: not metered
};

class ThreadGroup {
 public:
  // Identities are 29 bits wide, as the wasi-threads proposal has it.
  static constexpr std::uint32_t kThreadIdMax = 0x1FFF'FFFF;

  // Runs on the new thread and returns the fuel that is left over. Must not throw.
  using Body = std::function<std::uint64_t(const ThreadStart&)>;
  // Whether the run is to stop: no thread starts any more.
  using StopQuestion = std::function<bool()>;

  struct Settings {
    wire::ThreadLimits limits;
    std::uint64_t fuel = 0;  // of all threads together, the first included; 0: not metered
    std::size_t stack_bytes = 0;
  };

  ThreadGroup(const Settings& settings, StopQuestion stopped, Body body);

  // The identity of the new thread. Nothing if there cannot be one: the reason is counted, in this
  // order: the run is stopped, no fuel, the group is closed, too many threads (also when the system
  // refuses to make one).
  std::optional<std::uint32_t> Spawn(std::int32_t argument);

  // From now on every Spawn is refused.
  void Close();
  // Waits until all threads have ended. Unbounded: a guest can wait for ever.
  void Join();

  wire::Terminal::Rejections rejections() const;
  // Used by the threads that have ended.
  std::uint64_t fuel_used() const;

 private:
  struct Start;

  static void* Main(void* start);
  bool Reserve(ThreadStart& start);
  // Undoes Reserve; `fuel` goes back.
  void Release(std::uint64_t fuel);
  void Finish(const Start& start, std::uint64_t fuel_left);
  void JoinFinished();

  const Settings settings_;
  const StopQuestion stopped_;
  const Body body_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable idle_;
  std::uint64_t fuel_left_;
  std::uint64_t fuel_used_ = 0;
  std::uint32_t live_ = 0;
  std::uint32_t accepted_ = 0;
  std::uint32_t last_thread_ = 0;
  bool closed_ = false;
  wire::Terminal::Rejections rejections_;
  std::vector<pthread_t> finished_;  // ended but for the last few instructions
};

}  // namespace bulkhead::wasm
