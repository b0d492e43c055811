// Spare workers: started, locked down and greeted before there is work for them. Each serves one
// run. A spare that breaks while it waits is replaced and counted; a start that fails is tried
// again, later each time.
//
// Any thread. One thread of its own, from the first Keep on: it starts, greets and watches spares.
#pragma once

#include <bulkhead/snapshot.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/event_fd.h"
#include "base/wait_set.h"
#include "supervise/started_worker.h"
#include "wire/channel.h"

namespace bulkhead::supervise {

class WarmPool {
 public:
  // A spare that has not answered by then is broken.
  static constexpr std::chrono::seconds kGreetingMax{5};
  // Pause after a start that failed; doubles up to the last.
  static constexpr std::chrono::milliseconds kRetryFirst{50};
  static constexpr std::chrono::milliseconds kRetryLast{10'000};
  // From taking a spare to starting the next: so long the processors belong to the run that took
  // it. Starting one costs about as much as a short run.
  static constexpr std::chrono::milliseconds kReplacePause{3};

  WarmPool(Keeper& keeper, const Clock& clock, Ledger& ledger)
      : keeper_(keeper), clock_(clock), ledger_(ledger) {}

  WarmPool(const WarmPool&) = delete;
  WarmPool& operator=(const WarmPool&) = delete;
  // Ends the spares and the thread.
  ~WarmPool();

  // From now on keeps `count` workers that are started so, instead of what was kept before; 0:
  // none. kResourceExhausted if no thread is to be had.
  Status Keep(WorkerStart start, std::size_t count);

  // A spare that was started exactly so and still waits. Never blocks.
  std::optional<StartedWorker> Take(const WorkerStart& start);

  WarmCounts counts() const;

 private:
  struct Spare {
    std::uint64_t number = 0;
    StartedWorker worker;
    std::unique_ptr<wire::Channel> channel;  // until it has answered
    Deadline answer_by = Deadline::Never();

    bool ready() const { return channel == nullptr; }
  };

  struct Step {
    std::deque<Spare> to_end;
    std::optional<WorkerStart> to_start;
    std::string key;  // of to_start
  };

  Status StartThread();
  void Loop();
  // When a missing spare may be started; never: now. Under the lock.
  Deadline StartAt() const;
  // What is to be done now; nullopt: the end.
  std::optional<Step> NextStep();
  void Start(const WorkerStart& start, const std::string& key);
  Result<Spare> MakeSpare(const WorkerStart& start);
  void WaitForEvents();
  void LookAfter();
  // Why a spare is broken, if it is; reads its answer if it has one.
  std::optional<std::string> Examine(Spare& spare);
  std::optional<std::string> TakeAnswer(Spare& spare);
  // Not under the lock: may wait.
  void End(Spare spare);
  void NoteBroken(std::string problem);

  Keeper& keeper_;
  const Clock& clock_;
  Ledger& ledger_;
  std::optional<EventFd> wake_;  // with the thread

  mutable std::mutex mutex_;  // guards everything down to the thread's own part
  WorkerStart start_;
  std::string key_;
  std::size_t wanted_ = 0;
  std::deque<Spare> spares_;  // oldest first
  std::deque<Spare> unwanted_;
  Deadline replace_at_ = Deadline::Never();  // not before; never: at once
  WarmCounts counts_;
  bool stopping_ = false;

  // The thread's own
  WaitSet waits_;
  Deadline retry_at_ = Deadline::Never();  // never: no start has failed
  std::chrono::milliseconds pause_ = kRetryFirst;
  std::uint64_t next_number_ = 1;

  std::thread thread_;  // last: starts when all the rest exists
};

}  // namespace bulkhead::supervise
