#include "supervise/exchange.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/check.h"
#include "wire/handshake.h"

namespace bulkhead::supervise {
namespace {

constexpr process::ExitStatus kKilledFromOutside = {process::ExitStatus::How::kSignalled, SIGKILL};

std::vector<BorrowedFd> Borrow(const std::vector<UniqueFd>& fds) {
  std::vector<BorrowedFd> borrowed;
  borrowed.reserve(fds.size());
  for (const UniqueFd& fd : fds) {
    borrowed.push_back(fd.borrow());
  }
  return borrowed;
}

std::uint64_t RemainingMs(Deadline deadline, MonotonicTime now) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline.Remaining(now)).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(left, 1));
}

}  // namespace

Exchange::Exchange(ExchangeContext context, ExchangeInput input)
    : context_(context),
      input_(std::move(input)),
      channel_(std::move(input_.worker.socket), wire::Direction::kFromWorker),
      id_(input_.worker.id) {}

ExchangeResult Exchange::RunToEnd() {
  const ScopedSigpipeBlock no_sigpipe;
  const GaugeHold protocol_task(context_.ledger.shared(), &WorkerLedger::live_protocol_tasks);
  Enter(Stage::kHandshake);
  Greet();
  while (!machine_.ended()) {
    Wait();
    WatchStreams();
    LatchStop();
    FlushChannel();
    if (waits_.Ready(kSocket) != 0) {
      FeedMessages();
    }
    FeedExit();
    FeedTimers();
  }
  Contain();
  DeliverRest();
  CountVerdict();
  result_.facts.verdict = machine_.verdict();
  result_.facts.stop = machine_.stop();
  result_.facts.worker_stderr = worker_stderr_.Text();
  return std::move(result_);
}

void Exchange::Enter(Stage stage) {
  result_.stage = stage;
  Announce(stage);
}

void Exchange::Announce(Stage stage) {
  result_.entered[static_cast<std::size_t>(stage)] = context_.clock.Now();
  if (context_.observer != nullptr) {
    context_.observer->OnStage({context_.run_id, stage, input_.worker.process->identity().pid});
  }
}

// With the report, or with the end that came without one.
void Exchange::AnnounceReap() {
  if (result_.entered[static_cast<std::size_t>(Stage::kReap)] == MonotonicTime{}) {
    Announce(Stage::kReap);
  }
}

// A spare worker was greeted before.
void Exchange::Greet() {
  if (input_.worker.ack) {
    result_.ack = *std::move(input_.worker.ack);
    ++messages_;
    Advance(Event::kHelloAck);
    return;
  }
  auto frame = wire::EncodeFrame(id_, wire::ToWorker(input_.worker.hello));
  BH_CHECK(frame.has_value());  // the request was validated
  if (Status sent = channel_.Send(std::move(*frame), Borrow(input_.hello_descriptors)); !sent) {
    EndAfterWriteError(sent.error());
  }
}

void Exchange::SendExecute() {
  Enter(Stage::kHandOver);
  input_.hello_descriptors.clear();
  input_.execute.remaining_ms = RemainingMs(input_.deadline, context_.clock.Now());
  auto frame = wire::EncodeFrame(id_, wire::ToWorker(input_.execute));
  BH_CHECK(frame.has_value());
  if (Status sent = channel_.Send(std::move(*frame), Borrow(input_.execute_descriptors)); !sent) {
    EndAfterWriteError(sent.error());
  } else if (!channel_.pending()) {
    input_.execute_descriptors.clear();
  }
}

void Exchange::SendCancel() {
  Enter(Stage::kStop);
  grace_end_ = Deadline::After(context_.clock.Now(), input_.grace);
  const auto frame = wire::EncodeFrame(id_, wire::ToWorker(wire::Cancel{}));
  if (Status sent = channel_.Send(*frame, {}); !sent) {
    EndAfterWriteError(sent.error());
    return;
  }
  context_.ledger.Add(&WorkerLedger::cancel_sent);
}

void Exchange::FlushChannel() {
  if (!channel_ended_ && channel_.pending()) {
    if (Status flushed = channel_.Flush(); !flushed) {
      EndAfterWriteError(flushed.error());
    } else if (!channel_.pending()) {
      input_.execute_descriptors.clear();
    }
  }
}

// The worker may have answered and left before it could be told: its answer is still there.
void Exchange::EndAfterWriteError(const Error& error) {
  FeedMessages();
  if (result_.problem.empty() && !result_.facts.terminal) {
    result_.problem = error.message;
  }
  LosePipe();
}

void Exchange::LosePipe() {
  channel_ended_ = true;
  Advance(Event::kPipeLost);
}

void Exchange::Wait() {
  waits_.Clear();
  const bool reading = !channel_ended_ && machine_.phase() != Phase::kTerminated;
  if (reading) {
    const bool writing = channel_.pending();
    waits_.Add(channel_.fd(), static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN), kSocket);
  }
  waits_.Add(input_.worker.process->pidfd(), POLLIN, kPidfd);
  waits_.Add(input_.worker.worker_stderr.borrow(), POLLIN, kWorkerStderr);
  if (machine_.stop() == StopCause::kNone && CanStop()) {
    waits_.Add(BorrowedFd(input_.cancel.poll_fd()), POLLIN, kCancel);
    waits_.Add(BorrowedFd(input_.abandoned.poll_fd()), POLLIN, kAbandoned);
  }
  if (CanStop()) {
    waits_.Add(BorrowedFd(input_.force.poll_fd()), POLLIN, kForce);
  }
  if (GuestReads()) {
    input_.guest_stdin->AddTo(waits_, kStdin);
  }
  if (input_.guest_stdout) {
    input_.guest_stdout->AddTo(waits_, kStdout);
  }
  if (input_.guest_stderr) {
    input_.guest_stderr->AddTo(waits_, kStderr);
  }
  if (!waits_.Wait(context_.clock, NextTimer())) {
    Advance(Event::kProbeFailed);  // without a wait there is no supervision: end it
  }
}

bool Exchange::CancelRequested() const {
  return input_.cancel.cancelled() || input_.abandoned.cancelled();
}

// A worker that has reported, or whose pipe is lost, has its own bound; a stop no longer changes
// what becomes of it.
bool Exchange::CanStop() const {
  return machine_.phase() != Phase::kTerminated && machine_.phase() != Phase::kPipeLost;
}

// A stop outranks the time for compiling, and has its own bound.
bool Exchange::Compiling() const {
  return machine_.phase() == Phase::kCompiling && machine_.stop() == StopCause::kNone;
}

// What is read for a guest that never starts would be lost to whoever runs next.
bool Exchange::GuestReads() const {
  return input_.guest_stdin && result_.facts.guest_started;
}

Deadline Exchange::NextTimer() const {
  Deadline next = std::min({grace_end_, linger_end_, pipe_wait_end_});
  if (Compiling()) {
    next = std::min(next, compile_end_);
  }
  if (machine_.stop() == StopCause::kNone && CanStop()) {
    next = std::min(next, input_.deadline);
  }
  return next;
}

void Exchange::WatchStreams() {
  if (waits_.Ready(kWorkerStderr) != 0) {
    DrainWorkerStderr();
  }
  if (GuestReads()) {
    input_.guest_stdin->Pump(waits_, kStdin);
  }
  if (input_.guest_stdout) {
    input_.guest_stdout->Pump(waits_, kStdout);
  }
  if (input_.guest_stderr) {
    input_.guest_stderr->Pump(waits_, kStderr);
  }
}

void Exchange::DrainWorkerStderr() {
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t got = read(input_.worker.worker_stderr.get(), buffer.data(), buffer.size());
    if (got > 0) {
      worker_stderr_.Append({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      if (got == 0) {
        input_.worker.worker_stderr.Reset();
      }
      return;
    }
  }
}

// Rows B1, B2, B13: cancel first, then the deadline; our own reasons to stop count as a cancel.
void Exchange::LatchStop() {
  if (!CanStop()) {
    return;
  }
  if (input_.force.cancelled()) {
    machine_.LatchStop(true, false);
    Advance(Event::kStopByKill);
    return;
  }
  const GuestOutput* out = guest_stdout();
  const bool limit = out != nullptr && out->limit_reached();
  const bool closed = out != nullptr && out->destination_closed();
  const bool cancelled = CancelRequested();
  if (machine_.LatchStop(cancelled || limit || closed,
                         input_.deadline.PassedAt(context_.clock.Now()))) {
    result_.facts.stdout_limit_reached = limit && !cancelled;
    result_.facts.stdout_closed = closed && !limit && !cancelled;
    Advance(input_.execute.cooperative ? Event::kStop : Event::kStopByKill);
  }
}

void Exchange::FeedMessages() {
  while (!channel_ended_ && !machine_.ended() && machine_.phase() != Phase::kTerminated) {
    wire::Frame frame;
    auto read = channel_.Receive(&frame);
    if (!read) {
      // A frame that the end of the stream cut short is a dying worker, anything else a lying one.
      result_.problem = read.error().message;
      const bool died = read.error().reason == "truncated" || read.error().code == ErrorCode::kIo;
      died ? LosePipe() : Advance(Event::kViolation);
      return;
    }
    if (*read == wire::Channel::Read::kWouldBlock) {
      return;
    }
    if (*read == wire::Channel::Read::kEnd) {
      LosePipe();
      return;
    }
    FeedFrame(frame);
  }
}

void Exchange::FeedFrame(const wire::Frame& frame) {
  if (wire::MessageId{frame.header.generation, frame.header.request_id} != id_) {
    result_.problem = fmt::format("a message for generation {} request {}, this is {} {}",
                                  frame.header.generation, frame.header.request_id, id_.generation,
                                  id_.request_id);
    Advance(Event::kViolation);
    return;
  }
  if (++messages_ > wire::kWorkerMessagesMax) {
    result_.problem = "more messages than a run may have";
    Advance(Event::kViolation);
    return;
  }
  auto message = wire::DecodeFromWorker(frame.header.kind, frame.body);
  if (!message) {
    result_.problem = message.error().message;
    Advance(Event::kViolation);
    return;
  }
  const Phase before = machine_.phase();
  Advance(Judge(std::move(*message)));
  if (machine_.verdict() == Verdict::kProtocol && result_.problem.empty()) {
    result_.problem = fmt::format("message kind {} in phase {}",
                                  static_cast<int>(frame.header.kind), PhaseName(before));
  }
}

Event Exchange::Judge(wire::FromWorker message) {
  if (auto* ack = std::get_if<wire::HelloAck>(&message)) {
    return JudgeAck(std::move(*ack));
  }
  if (const auto* ready = std::get_if<wire::Ready>(&message)) {
    return ready->module_bytes == input_.execute.module_bytes ? Event::kReady : Event::kViolation;
  }
  if (const auto* started = std::get_if<wire::Started>(&message)) {
    if (input_.execute.mode != wire::Mode::kRun) {
      return Event::kViolation;  // there is nothing to start
    }
    result_.compile_us = started->compile_us;
    return Event::kStarted;
  }
  if (auto* trace = std::get_if<wire::Trace>(&message)) {
    result_.trace = std::move(trace->text);
    return Event::kTrace;
  }
  return JudgeTerminal(std::get<wire::Terminal>(std::move(message)));
}

Event Exchange::JudgeAck(wire::HelloAck ack) {
  if (machine_.phase() != Phase::kAwaitAck) {
    return Event::kHelloAck;
  }
  AckJudgement judgement =
      JudgeHelloAck(input_.worker.hello, ack, input_.expected, input_.worker.walls);
  result_.problem = std::move(judgement.problem);
  if (judgement.state == AckJudgement::State::kViolation) {
    return Event::kViolation;
  }
  result_.ack = std::move(ack);
  return judgement.state == AckJudgement::State::kFine ? Event::kHelloAck : Event::kLockDownFailed;
}

Event Exchange::JudgeTerminal(wire::Terminal terminal) {
  const bool zero = terminal.counters.zero();
  if (!zero) {
    result_.problem = "the worker's terminal reports resources that are still held";
  }
  result_.facts.terminal = std::move(terminal);
  return zero ? Event::kTerminal : Event::kBadTerminal;
}

void Exchange::FeedExit() {
  if (machine_.ended() || waits_.Ready(kPidfd) == 0) {
    return;
  }
  auto exit = input_.worker.process->Observe();
  if (!exit) {
    result_.problem = exit.error().message;
    Advance(Event::kProbeFailed);
    return;
  }
  if (!*exit) {
    return;
  }
  // Everything the worker sent before it exited is in the socket now (row B11): a delivered
  // terminal is never lost.
  const bool watchdog = input_.guard != nullptr && input_.guard->fired();
  exit_seen_ = !watchdog;
  result_.facts.exit = **exit;
  FeedMessages();
  if (watchdog && CanStop()) {
    // This thread was held up and the watchdog did its work: the same end as if we had.
    machine_.LatchStop(CancelRequested(), true);
    context_.ledger.Add(&WorkerLedger::grace_expired);
    Advance(Event::kStopByKill);
  } else if (watchdog && result_.facts.exit == kKilledFromOutside) {
    // It was still there when the last bound of all was over, before its own.
    Advance(machine_.phase() == Phase::kTerminated ? Event::kLingerOver : Event::kPipeWaitOver);
  }
  if (!machine_.ended()) {
    Advance(Event::kExited);
  }
}

void Exchange::FeedTimers() {
  const MonotonicTime now = context_.clock.Now();
  if (machine_.ended()) {
    return;
  }
  if (grace_end_.PassedAt(now)) {
    context_.ledger.Add(&WorkerLedger::grace_expired);
    Advance(Event::kGraceOver);
  } else if (linger_end_.PassedAt(now)) {
    Advance(Event::kLingerOver);
  } else if (pipe_wait_end_.PassedAt(now)) {
    Advance(Event::kPipeWaitOver);
  } else if (Compiling() && compile_end_.PassedAt(now)) {
    Advance(Event::kCompileTimeOver);
  }
}

void Exchange::Advance(Event event) {
  Do(machine_.Advance(event));
}

void Exchange::Do(Action action) {
  switch (action) {
    case Action::kNothing:
    case Action::kKeepTrace:
    case Action::kReap:
      return;
    case Action::kSendExecute:
      return SendExecute();
    case Action::kNoteReady:
      compile_end_ = Deadline::After(context_.clock.Now(), input_.compile_time);
      return Enter(Stage::kCompile);
    case Action::kNoteStarted:
      result_.facts.guest_started = true;
      // Best effort on top of the worker's own limit: it may be gone already.
      (void)input_.worker.process->LimitGrowth(
          {.data_bytes = input_.execute.memory_bytes + input_.execute.memory_overhead_bytes,
           .uncounted_bytes = input_.uncounted_bytes});
      return Enter(Stage::kExecute);
    case Action::kKeepTerminal:
      AnnounceReap();
      input_.worker.process->SampleMemory();  // while there is something to look at
      linger_end_ = Deadline::After(context_.clock.Now(), kLingerMax);
      grace_end_ = Deadline::Never();
      return;
    case Action::kSendCancel:
      return SendCancel();
    case Action::kAwaitExit:
      pipe_wait_end_ = Deadline::After(context_.clock.Now(), kPipeWaitMax);
      grace_end_ = Deadline::Never();
      return;
    case Action::kForce:
      forced_ = !exit_seen_;
      return;
  }
}

// Kills what is left of the tree after every kind of end, and reaps.
void Exchange::Contain() {
  result_.facts.exited_by_itself = !forced_;
  input_.execute_descriptors
      .clear();  // our copies of the guest's pipe ends, if they were never sent
  AnnounceReap();
  auto reaped = input_.worker.process->KillAndReap(Deadline::After(context_.clock.Now(), kReapMax));
  if (!reaped || !*reaped) {
    result_.facts.contained = false;
    result_.problem =
        reaped ? fmt::format("the worker was not gone {} s after it was killed", kReapMax.count())
               : reaped.error().message;
    result_.uncontained = std::move(input_.worker.process);
    return;
  }
  result_.facts.exit = **reaped;
  result_.use = input_.worker.process->resource_use();
  result_.facts.memory = result_.use.cgroup_memory;
  if (forced_) {
    context_.ledger.Add(&WorkerLedger::forced);
  }
  context_.ledger.Add(&WorkerLedger::reaped);
}

void Exchange::CountVerdict() {
  const bool reported_fault =
      machine_.verdict() == Verdict::kReported && result_.facts.terminal &&
      machine_.stop() == StopCause::kNone && result_.facts.exit && result_.facts.exit->clean() &&
      result_.facts.terminal->kind == wire::Terminal::Kind::kProtocolFailure;
  if (machine_.verdict() == Verdict::kProtocol || reported_fault) {
    context_.ledger.Add(&WorkerLedger::protocol_failures);
  }
}

}  // namespace bulkhead::supervise
