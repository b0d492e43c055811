// The supervisor of one run as a pure table: (phase, event) -> (phase, action). No I/O, no time, no
// memory but the phase and what was decided. The exchange feeds it events in a fixed order on every
// wake-up (docs/outcomes.md, table B).
#pragma once

#include <bulkhead/outcome.h>

#include <cstdint>

namespace bulkhead::supervise {

enum class Phase : std::uint8_t {
  kAwaitAck,    // Hello sent
  kAwaitReady,  // Execute sent; until Ready a stop is a kill
  kCompiling,
  kExecuting,
  kTraced,
  kTerminated,  // terminal accepted, the worker has kLingerMax to exit
  kPipeLost,    // the channel ended or broke; the worker has kPipeWaitMax to show that it exited
  kForcing,     // to be killed and reaped
  kExited,      // exit observed; to be reaped
};
inline constexpr int kPhaseCount = 9;

enum class Event : std::uint8_t {
  kStop,        // a stop was latched; the worker may stop politely
  kStopByKill,  // a stop was latched and politeness is over or was never offered
  kHelloAck,
  kLockDownFailed,
  kReady,
  kStarted,
  kTrace,
  kTerminal,     // legal, counters zero
  kBadTerminal,  // counters not zero, or no legal mapping
  kViolation,    // undecodable, wrong id, wrong nonce or build, too many messages
  kPipeLost,     // end of stream, a frame cut short by it, or a failed write
  kExited,       // seen and not reaped; everything the worker sent before has been fed already
  kProbeFailed,  // the kernel would not tell whether it exited
  kGraceOver,
  kLingerOver,
  kPipeWaitOver,
  kCompileTimeOver,
};
inline constexpr int kEventCount = 17;

enum class Action : std::uint8_t {
  kNothing,
  kSendExecute,
  kNoteReady,    // and start the compile clock
  kNoteStarted,  // lower the memory limit from outside
  kKeepTrace,
  kKeepTerminal,  // and start the linger clock
  kSendCancel,    // and start the grace clock
  kAwaitExit,     // start the pipe-wait clock
  kForce,
  kReap,
};

// Why the run ended, decided by the table; Classify turns it into an Outcome.
enum class Verdict : std::uint8_t {
  kNone,
  kReported,    // a legal terminal and an observed exit: the exit status decides whether it counts
  kForcedStop,  // killed because of the latched stop
  kProtocol,
  kUnexpectedExit,
  kLingered,
  kLockDown,     // the worker could not be locked down
  kCompileTime,  // killed because compiling took too long
};

struct Step {
  Phase phase = Phase::kAwaitAck;
  Action action = Action::kNothing;
  Verdict verdict = Verdict::kNone;  // not kNone: the verdict is final from here on
};

// The table. Every pair has a row; pairs that cannot happen are violations of ours and yield
// kNothing.
Step NextStep(Phase phase, Event event);

// Phase, latched stop and verdict of one run.
class RunMachine {
 public:
  Phase phase() const { return phase_; }

  StopCause stop() const { return stop_; }

  Verdict verdict() const { return verdict_; }

  bool ended() const { return phase_ == Phase::kForcing || phase_ == Phase::kExited; }

  // Has the worker confirmed the module? Before that a stop is a kill (table B, row B2).
  bool ready() const { return ready_; }

  // First of {cancelled, deadline}: cancel wins a tie, the first latch stays. True if this call
  // latched.
  bool LatchStop(bool cancelled, bool deadline_passed);

  // Looks up, moves, returns what to do. A verdict once reached is kept.
  Action Advance(Event event);

 private:
  Phase phase_ = Phase::kAwaitAck;
  StopCause stop_ = StopCause::kNone;
  Verdict verdict_ = Verdict::kNone;
  bool ready_ = false;
};

const char* PhaseName(Phase phase);

}  // namespace bulkhead::supervise
