#include "supervise/run_machine.h"

#include <array>

namespace bulkhead::supervise {
namespace {

using P = Phase;
using A = Action;
using V = Verdict;

// Shorthands of the table's cells.
constexpr Step Stay(P phase) {
  return {phase, A::kNothing, V::kNone};
}

constexpr Step Force(V verdict) {
  return {P::kForcing, A::kForce, verdict};
}

constexpr Step Reap(V verdict) {
  return {P::kExited, A::kReap, verdict};
}

constexpr Step kProtocolFault = Force(V::kProtocol);
constexpr Step kKillForStop = Force(V::kForcedStop);
constexpr Step kLosePipe = {P::kPipeLost, A::kAwaitExit, V::kNone};
constexpr Step kDiedEarly = Reap(V::kUnexpectedExit);
constexpr Step kBlind = Force(V::kUnexpectedExit);
constexpr Step kAccept = {P::kTerminated, A::kKeepTerminal, V::kNone};

using Row = std::array<Step, kEventCount>;

// What an unexpected message does to a worker that is not done yet.
constexpr Row Unfinished(P phase, Step stop) {
  return {stop,           kKillForStop,   kProtocolFault, kProtocolFault, kProtocolFault,
          kProtocolFault, kProtocolFault, kProtocolFault, kProtocolFault, kProtocolFault,
          kLosePipe,      kDiedEarly,     kBlind,         kKillForStop,   Stay(phase),
          Stay(phase),    Stay(phase)};
}

constexpr Row With(Row row, Event event, Step step) {
  row[static_cast<std::size_t>(event)] = step;
  return row;
}

constexpr Row All(Step step) {
  Row row{};
  row.fill(step);
  return row;
}

constexpr Step Polite(P phase) {
  return {phase, A::kSendCancel, V::kNone};
}

constexpr std::array<Row, kPhaseCount> kTable = {
    // kAwaitAck
    With(With(Unfinished(P::kAwaitAck, kKillForStop), Event::kHelloAck,
              {P::kAwaitReady, A::kSendExecute, V::kNone}),
         Event::kLockDownFailed, Force(V::kLockDown)),
    // kAwaitReady
    With(Unfinished(P::kAwaitReady, kKillForStop), Event::kReady,
         {P::kCompiling, A::kNoteReady, V::kNone}),
    // kCompiling
    With(With(With(Unfinished(P::kCompiling, Polite(P::kCompiling)), Event::kStarted,
                   {P::kExecuting, A::kNoteStarted, V::kNone}),
              Event::kTerminal, kAccept),
         Event::kCompileTimeOver, Force(V::kCompileTime)),
    // kExecuting
    With(With(Unfinished(P::kExecuting, Polite(P::kExecuting)), Event::kTrace,
              {P::kTraced, A::kKeepTrace, V::kNone}),
         Event::kTerminal, kAccept),
    // kTraced
    With(Unfinished(P::kTraced, Polite(P::kTraced)), Event::kTerminal, kAccept),
    // kTerminated: nothing is read any more, and a stop no longer matters; only the exit and its
    // bound do
    With(With(With(All(Stay(P::kTerminated)), Event::kExited, Reap(V::kReported)),
              Event::kProbeFailed, kBlind),
         Event::kLingerOver, Force(V::kLingered)),
    // kPipeLost: an exit outranks the lost pipe; a living worker without a pipe broke the protocol
    With(With(With(All(Stay(P::kPipeLost)), Event::kExited, kDiedEarly), Event::kProbeFailed,
              kBlind),
         Event::kPipeWaitOver, kProtocolFault),
    // kForcing, kExited: decided
    All(Stay(P::kForcing)),
    All(Stay(P::kExited)),
};

constexpr bool ExitAlwaysEndsTheRun() {
  for (std::size_t phase = 0; phase < static_cast<std::size_t>(P::kForcing); ++phase) {
    if (kTable[phase][static_cast<std::size_t>(Event::kExited)].phase != P::kExited) {
      return false;
    }
  }
  return true;
}

constexpr bool EveryEndHasAVerdict() {
  for (std::size_t phase = 0; phase < static_cast<std::size_t>(P::kForcing); ++phase) {
    for (const Step& step : kTable[phase]) {
      const bool ends = step.phase == P::kForcing || step.phase == P::kExited;
      if (ends != (step.verdict != V::kNone)) {
        return false;
      }
    }
  }
  return true;
}

static_assert(ExitAlwaysEndsTheRun());
static_assert(EveryEndHasAVerdict());

}  // namespace

Step NextStep(Phase phase, Event event) {
  return kTable[static_cast<std::size_t>(phase)][static_cast<std::size_t>(event)];
}

bool RunMachine::LatchStop(bool cancelled, bool deadline_passed) {
  if (stop_ != StopCause::kNone || (!cancelled && !deadline_passed)) {
    return false;
  }
  stop_ = cancelled ? StopCause::kCancelled : StopCause::kDeadlineExceeded;
  return true;
}

Action RunMachine::Advance(Event event) {
  const Step step = NextStep(phase_, event);
  phase_ = step.phase;
  ready_ = ready_ || phase_ == Phase::kCompiling;
  if (verdict_ == Verdict::kNone) {
    verdict_ = step.verdict;
  }
  return step.action;
}

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kAwaitAck:
      return "await-hello-ack";
    case Phase::kAwaitReady:
      return "await-ready";
    case Phase::kCompiling:
      return "compiling";
    case Phase::kExecuting:
      return "executing";
    case Phase::kTraced:
      return "traced";
    case Phase::kTerminated:
      return "terminated";
    case Phase::kPipeLost:
      return "pipe-lost";
    case Phase::kForcing:
      return "forcing";
    case Phase::kExited:
      return "exited";
  }
  return "exited";
}

}  // namespace bulkhead::supervise
