// One run's conversation with one worker, from Hello to the reaped process: the loop of table B.
// Runs on the caller's thread; owns the channel, the stream relays and the process until it ends or
// hands them to the Keeper.
#pragma once

#include <bulkhead/observer.h>
#include <bulkhead/run.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/tail_buffer.h"
#include "base/wait_set.h"
#include "process/worker_process.h"
#include "supervise/classify.h"
#include "supervise/guest_streams.h"
#include "supervise/ledger.h"
#include "supervise/run_machine.h"
#include "supervise/started_worker.h"
#include "supervise/watchdog.h"
#include "wire/channel.h"

namespace bulkhead::supervise {

// Bounds of table B (one-shot specification, section 8).
inline constexpr std::chrono::seconds kReapMax{5};      // one synchronous containment attempt
inline constexpr std::chrono::seconds kLingerMax{5};    // from a terminal to the worker's exit
inline constexpr std::chrono::seconds kPipeWaitMax{1};  // from a lost pipe to the worker's exit
inline constexpr std::chrono::seconds kDeliverMax{
    1};  // for guest output left in the pipes after a stop
inline constexpr std::size_t kWorkerStderrBytesMax = 64U << 10;

// What the exchange needs; everything outlives it.
struct ExchangeContext {
  const Clock& clock;
  RunLedger& ledger;
  Observer* observer = nullptr;
  std::uint64_t run_id = 0;
};

struct ExchangeInput {
  StartedWorker worker;  // with an answer to Hello: it is waiting for Execute
  std::vector<UniqueFd> hello_descriptors;
  AckExpectations expected;
  wire::Execute execute;
  std::vector<UniqueFd> execute_descriptors;  // closed once sent
  std::optional<GuestInput> guest_stdin;
  std::optional<GuestOutput> guest_stdout;
  std::optional<GuestOutput> guest_stderr;
  Deadline deadline = Deadline::Never();
  std::chrono::nanoseconds grace{0};
  std::chrono::nanoseconds compile_time = std::chrono::nanoseconds::max();  // from Ready on
  std::uint64_t uncounted_bytes = 0;  // see process::MemoryGrowth; of the guest's phase
  CancelToken cancel;
  CancelToken abandoned;  // a second token: the owner of the run's handle is gone
  CancelToken force;
  const WatchGuard* guard = nullptr;  // tells whether the watchdog had to kill
};

struct ExchangeResult {
  Facts facts;
  Stage stage = Stage::kHandshake;  // the last stage reached before the end
  std::array<MonotonicTime, kStageCount>
      entered{};  // when each stage was entered; epoch if it was not
  wire::HelloAck ack;
  std::uint64_t compile_us = 0;
  std::string problem;  // what broke the protocol or the lock-down, for the diagnostic
  std::string trace;
  process::ResourceUse use;
  std::unique_ptr<process::WorkerProcess>
      uncontained;  // set if facts.contained is false: for the Keeper
};

class Exchange {
 public:
  Exchange(ExchangeContext context, ExchangeInput input);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() = default;

  // The whole conversation. Bounded: deadline + grace + kReapMax + kLingerMax + kDeliverMax.
  ExchangeResult RunToEnd();

  const GuestOutput* guest_stdout() const {
    return input_.guest_stdout ? &*input_.guest_stdout : nullptr;
  }

  GuestOutput* guest_stdout() { return input_.guest_stdout ? &*input_.guest_stdout : nullptr; }

  GuestOutput* guest_stderr() { return input_.guest_stderr ? &*input_.guest_stderr : nullptr; }

 private:
  enum Key : int {
    kSocket,
    kPidfd,
    kWorkerStderr,
    kCancel,
    kAbandoned,
    kForce,
    kStdin = 8,
    kStdout = 10,
    kStderr = 12
  };

  void Greet();
  void Wait();
  void LatchStop();
  void WatchStreams();
  void FeedMessages();
  void FeedFrame(const wire::Frame& frame);
  Event Judge(wire::FromWorker message);
  Event JudgeAck(wire::HelloAck ack);
  Event JudgeTerminal(wire::Terminal terminal);
  void FeedExit();
  void FeedTimers();

  void Advance(Event event);
  void Do(Action action);
  void SendExecute();
  void SendCancel();
  void FlushChannel();
  void EndAfterWriteError(const Error& error);
  void LosePipe();
  void Enter(Stage stage);
  // Enter, but the report's stage stays where the run ended.
  void Announce(Stage stage);
  void AnnounceReap();
  bool CancelRequested() const;
  bool CanStop() const;
  bool Compiling() const;
  bool GuestReads() const;
  Deadline NextTimer() const;
  void DrainWorkerStderr();

  void Contain();
  void DeliverRest();
  bool DeliverSome(Deadline until, bool stopped);
  void CountVerdict();

  ExchangeContext context_;
  ExchangeInput input_;
  wire::Channel channel_;
  wire::MessageId id_;
  RunMachine machine_;
  ExchangeResult result_;
  WaitSet waits_;
  TailBuffer worker_stderr_{kWorkerStderrBytesMax};
  int messages_ = 0;
  bool channel_ended_ = false;
  bool exit_seen_ = false;
  bool forced_ = false;
  Deadline compile_end_ = Deadline::Never();
  Deadline grace_end_ = Deadline::Never();
  Deadline linger_end_ = Deadline::Never();
  Deadline pipe_wait_end_ = Deadline::Never();
};

}  // namespace bulkhead::supervise
