#include "worker/serve_loop.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "base/errno_error.h"
#include "base/wait_set.h"
#include "wire/message_rules.h"

namespace bulkhead::worker {
namespace {

// Below a guest thread's stack: room to run into before other memory is reached.
constexpr std::size_t kGuardBytes = 64U << 10;

wire::Terminal::Kind KindOf(StopCause cause) {
  switch (cause) {
    case StopCause::kCancelled:
      return wire::Terminal::Kind::kCancelled;
    case StopCause::kDeadlineExceeded:
      return wire::Terminal::Kind::kDeadlineExceeded;
  }
  return wire::Terminal::Kind::kCancelled;
}

wire::Terminal OutOfMemory(const RunControl& control) {
  wire::Terminal terminal =
      MakeTerminal(wire::Terminal::Kind::kLimitReached, "the worker ran out of memory");
  terminal.limit =
      control.began() ? wire::Terminal::Limit::kMemory : wire::Terminal::Limit::kCompile;
  return terminal;
}

// The handler on its thread.
class GuestThread {
 public:
  GuestThread(RunHandler& handler, RunRequest request, RunControl& control)
      : handler_(handler), request_(std::move(request)), control_(control) {}

  Status Start(std::size_t stack_bytes) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setguardsize(&attributes, kGuardBytes);
    int failed = pthread_attr_setstacksize(&attributes, stack_bytes + kGuardBytes);
    if (failed == 0) {
      failed = pthread_create(&thread_, &attributes, &GuestThread::Main, this);
    }
    pthread_attr_destroy(&attributes);
    if (failed != 0) {
      return Fail(ErrnoError("pthread_create", "guest thread", failed));
    }
    return {};
  }

  void Join() const { pthread_join(thread_, nullptr); }

 private:
  static void* Main(void* self) {
    auto& thread = *static_cast<GuestThread*>(self);
    try {
      thread.control_.Finish(thread.handler_.Run(std::move(thread.request_), thread.control_));
    } catch (const std::bad_alloc&) {
      thread.control_.Finish(OutOfMemory(thread.control_));
    }
    return nullptr;
  }

  RunHandler& handler_;
  RunRequest request_;
  RunControl& control_;
  pthread_t thread_{};
};

class ServeLoop {
 public:
  ServeLoop(wire::Channel& channel, wire::MessageId id, RunHandler& handler, RunControl& control)
      : channel_(channel), id_(id), handler_(handler), control_(control) {}

  // How the run ended; unless threads are left, the handler's has nothing more to do.
  Result<RunEnd> WaitForEnd(std::chrono::milliseconds time_for_guest) {
    for (;;) {
      BH_TRY(WaitForEvent());
      if (wait_set_.Ready(kProgress) != 0) {
        control_.progress().Drain();
        BH_TRY(RelayBegin(time_for_guest));
        if (std::optional<RunEnd> end = control_.TakeEnd()) {
          return *std::move(end);
        }
      }
      // Cancel, anything else, garbage and the end of the stream all mean the same; so nothing is
      // read any more.
      if (wait_set_.Ready(kParent) != 0) {
        Stop(StopCause::kCancelled);
      } else if (deadline_.PassedAt(clock_.Now())) {
        Stop(StopCause::kDeadlineExceeded);
      }
      // Compiling cannot be interrupted, and nothing of the guest has run: end without it.
      if (const std::optional<StopCause> stop = control_.stop(); stop && !control_.began()) {
        return RunEnd{MakeTerminal(KindOf(*stop)), {}, true};
      }
    }
  }

 private:
  enum Key : int { kProgress, kParent };

  Status WaitForEvent() {
    const bool stopped = control_.stop().has_value();
    wait_set_.Clear();
    wait_set_.Add(control_.progress().fd(), POLLIN, kProgress);
    if (!stopped) {
      wait_set_.Add(channel_.fd(), POLLIN, kParent);
    }
    BH_TRY(wait_set_.Wait(clock_, stopped ? Deadline::Never() : deadline_));
    return {};
  }

  // Started goes out, and the guest's time runs.
  Status RelayBegin(std::chrono::milliseconds time_for_guest) {
    const std::optional<std::chrono::microseconds> compile_time = control_.began();
    if (!compile_time || begin_relayed_) {
      return {};
    }
    begin_relayed_ = true;
    deadline_ = Deadline::After(clock_.Now(), time_for_guest);
    const wire::Started started{static_cast<std::uint64_t>(compile_time->count())};
    if (!SendFully(channel_, id_, started)) {
      Stop(StopCause::kCancelled);  // the parent is gone
    }
    return {};
  }

  void Stop(StopCause cause) {
    if (control_.Stop(cause) && control_.began()) {
      handler_.Interrupt(cause);
    }
  }

  wire::Channel& channel_;
  const wire::MessageId id_;
  RunHandler& handler_;
  RunControl& control_;
  const MonotonicClock clock_;
  WaitSet wait_set_;
  Deadline deadline_ = Deadline::Never();
  bool begin_relayed_ = false;
};

std::chrono::milliseconds TimeForGuest(const wire::Execute& execute) {
  constexpr auto kLongest =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds::max());
  return std::chrono::milliseconds(
      std::min(execute.remaining_ms, static_cast<std::uint64_t>(kLongest.count())));
}

// A terminal that breaks its own rules is a bug, but the parent still gets an answer.
wire::Terminal FitForTheWire(wire::Terminal terminal) {
  if (!terminal.counters.zero()) {
    wire::Terminal::Counters counters = terminal.counters;
    terminal = MakeTerminal(wire::Terminal::Kind::kWorkerFailure, "nonzero-worker-counters");
    terminal.counters = counters;
  }
  const std::string_view problem = wire::ProblemOf(terminal);
  return problem.empty() ? terminal : MakeTerminal(wire::Terminal::Kind::kWorkerFailure, problem);
}

}  // namespace

Status SendFully(wire::Channel& channel, wire::MessageId id, const wire::FromWorker& message) {
  std::string frame = BH_TRY(wire::EncodeFrame(id, message));
  BH_TRY(channel.Send(std::move(frame), {}));
  const MonotonicClock clock;
  WaitSet wait_set;
  while (channel.pending()) {
    wait_set.Clear();
    wait_set.Add(channel.fd(), POLLOUT, 0);
    BH_TRY(wait_set.Wait(clock, Deadline::Never()));
    BH_TRY(channel.Flush());
  }
  return {};
}

Status ServeRun(wire::Channel& channel, wire::MessageId id, RunHandler& handler,
                RunRequest request) {
  const Result<std::size_t> stack_bytes = handler.GuestThreadStackBytes(request.execute);
  if (!stack_bytes) {
    return SendFully(
        channel, id,
        MakeTerminal(wire::Terminal::Kind::kProtocolFailure, stack_bytes.error().message));
  }
  // Both outlive this function if the guest thread is abandoned in it: the process then exits at
  // once.
  RunControl* control = BH_TRY(RunControl::Create()).release();
  const std::chrono::milliseconds time_for_guest = TimeForGuest(request.execute);
  auto* thread = new GuestThread(handler, std::move(request), *control);
  if (const Status started = thread->Start(*stack_bytes); !started) {
    return SendFully(channel, id,
                     MakeTerminal(wire::Terminal::Kind::kWorkerFailure, started.error().message));
  }
  ServeLoop loop(channel, id, handler, *control);
  RunEnd end = BH_TRY(loop.WaitForEnd(time_for_guest));
  if (!end.threads_left) {
    thread->Join();
  }
  if (!end.trace.empty()) {
    BH_TRY(SendFully(channel, id, wire::Trace{std::move(end.trace)}));
  }
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): see above
  return SendFully(channel, id, FitForTheWire(std::move(end.terminal)));
}

}  // namespace bulkhead::worker
