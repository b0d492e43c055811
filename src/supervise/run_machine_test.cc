// Table B, row by row: every (phase, event) pair has its expectation here.
#include "supervise/run_machine.h"

#include <gtest/gtest.h>

#include <vector>

namespace bulkhead::supervise {
namespace {

constexpr Phase kLivePhases[] = {Phase::kAwaitAck, Phase::kAwaitReady, Phase::kCompiling,
                                 Phase::kExecuting, Phase::kTraced};
constexpr Event kMessages[] = {Event::kHelloAck, Event::kReady, Event::kStarted, Event::kTrace,
                               Event::kTerminal};

struct Legal {
  Phase phase;
  Event event;
  Phase next;
  Action action;
};

constexpr Legal kLegal[] = {
    {Phase::kAwaitAck, Event::kHelloAck, Phase::kAwaitReady, Action::kSendExecute},
    {Phase::kAwaitReady, Event::kReady, Phase::kCompiling, Action::kNoteReady},
    {Phase::kCompiling, Event::kStarted, Phase::kExecuting, Action::kNoteStarted},
    {Phase::kCompiling, Event::kTerminal, Phase::kTerminated, Action::kKeepTerminal},
    {Phase::kExecuting, Event::kTrace, Phase::kTraced, Action::kKeepTrace},
    {Phase::kExecuting, Event::kTerminal, Phase::kTerminated, Action::kKeepTerminal},
    {Phase::kTraced, Event::kTerminal, Phase::kTerminated, Action::kKeepTerminal},
};

const Legal* FindLegal(Phase phase, Event event) {
  for (const Legal& row : kLegal) {
    if (row.phase == phase && row.event == event) {
      return &row;
    }
  }
  return nullptr;
}

TEST(OneShot, U13EveryMessageInEveryPhaseIsLegalOrAProtocolFault) {
  for (const Phase phase : kLivePhases) {
    for (const Event event : kMessages) {
      const Step step = NextStep(phase, event);
      if (const Legal* legal = FindLegal(phase, event); legal != nullptr) {
        EXPECT_EQ(step.phase, legal->next) << PhaseName(phase);
        EXPECT_EQ(step.action, legal->action) << PhaseName(phase);
        EXPECT_EQ(step.verdict, Verdict::kNone) << PhaseName(phase);
      } else {
        EXPECT_EQ(step.action, Action::kForce) << PhaseName(phase);
        EXPECT_EQ(step.verdict, Verdict::kProtocol)
            << PhaseName(phase) << " event " << static_cast<int>(event);
      }
    }
  }
}

TEST(RunMachine, B2StopBeforeReadyKillsWithoutCancel) {
  for (const Phase phase : {Phase::kAwaitAck, Phase::kAwaitReady}) {
    const Step step = NextStep(phase, Event::kStop);
    EXPECT_EQ(step.action, Action::kForce);
    EXPECT_EQ(step.verdict, Verdict::kForcedStop);
  }
}

TEST(RunMachine, B13StopAfterReadySendsCancelAndStays) {
  for (const Phase phase : {Phase::kCompiling, Phase::kExecuting, Phase::kTraced}) {
    const Step step = NextStep(phase, Event::kStop);
    EXPECT_EQ(step.phase, phase);
    EXPECT_EQ(step.action, Action::kSendCancel);
    EXPECT_EQ(step.verdict, Verdict::kNone);
  }
}

TEST(RunMachine, B14GraceOverKills) {
  for (const Phase phase : {Phase::kCompiling, Phase::kExecuting, Phase::kTraced}) {
    EXPECT_EQ(NextStep(phase, Event::kGraceOver).verdict, Verdict::kForcedStop);
    EXPECT_EQ(NextStep(phase, Event::kStopByKill).verdict, Verdict::kForcedStop);
  }
}

TEST(RunMachine, OnlyCompilingCanTakeTooLong) {
  EXPECT_EQ(NextStep(Phase::kCompiling, Event::kCompileTimeOver).action, Action::kForce);
  EXPECT_EQ(NextStep(Phase::kCompiling, Event::kCompileTimeOver).verdict, Verdict::kCompileTime);
  for (const Phase phase : {Phase::kAwaitAck, Phase::kAwaitReady, Phase::kExecuting, Phase::kTraced,
                            Phase::kTerminated, Phase::kPipeLost}) {
    EXPECT_EQ(NextStep(phase, Event::kCompileTimeOver).phase, phase);
    EXPECT_EQ(NextStep(phase, Event::kCompileTimeOver).action, Action::kNothing);
  }
}

TEST(RunMachine, B6B7ViolationsAndBadTerminalsAreProtocolFaults) {
  for (const Phase phase : kLivePhases) {
    for (const Event event : {Event::kViolation, Event::kBadTerminal}) {
      EXPECT_EQ(NextStep(phase, event).verdict, Verdict::kProtocol);
      EXPECT_EQ(NextStep(phase, event).action, Action::kForce);
    }
  }
}

TEST(RunMachine, B8ReportedWorkerMayExitLingerOrHideItsExit) {
  EXPECT_EQ(NextStep(Phase::kTerminated, Event::kExited).verdict, Verdict::kReported);
  EXPECT_EQ(NextStep(Phase::kTerminated, Event::kExited).action, Action::kReap);
  EXPECT_EQ(NextStep(Phase::kTerminated, Event::kLingerOver).verdict, Verdict::kLingered);
  EXPECT_EQ(NextStep(Phase::kTerminated, Event::kProbeFailed).verdict, Verdict::kUnexpectedExit);
}

TEST(RunMachine, ReportedWorkerIsNotStoppedAnyMore) {
  for (const Event event :
       {Event::kStop, Event::kStopByKill, Event::kGraceOver, Event::kPipeLost}) {
    EXPECT_EQ(NextStep(Phase::kTerminated, event).phase, Phase::kTerminated);
    EXPECT_EQ(NextStep(Phase::kTerminated, event).action, Action::kNothing);
  }
}

TEST(RunMachine, B10ExitOutranksTheLostPipe) {
  for (const Phase phase : kLivePhases) {
    EXPECT_EQ(NextStep(phase, Event::kPipeLost).phase, Phase::kPipeLost);
    EXPECT_EQ(NextStep(phase, Event::kPipeLost).action, Action::kAwaitExit);
  }
  EXPECT_EQ(NextStep(Phase::kPipeLost, Event::kExited).verdict, Verdict::kUnexpectedExit);
  EXPECT_EQ(NextStep(Phase::kPipeLost, Event::kPipeWaitOver).verdict, Verdict::kProtocol);
  // A latched stop does not turn the fault into a forced containment.
  EXPECT_EQ(NextStep(Phase::kPipeLost, Event::kStop).verdict, Verdict::kNone);
  EXPECT_EQ(NextStep(Phase::kPipeLost, Event::kGraceOver).verdict, Verdict::kNone);
}

TEST(RunMachine, B11B12EndsWithoutATerminal) {
  for (const Phase phase : kLivePhases) {
    EXPECT_EQ(NextStep(phase, Event::kExited).verdict, Verdict::kUnexpectedExit);
    EXPECT_EQ(NextStep(phase, Event::kExited).action, Action::kReap);
    EXPECT_EQ(NextStep(phase, Event::kProbeFailed).verdict, Verdict::kUnexpectedExit);
    EXPECT_EQ(NextStep(phase, Event::kProbeFailed).action, Action::kForce);
  }
}

TEST(RunMachine, LockDownFailureIsItsOwnVerdict) {
  EXPECT_EQ(NextStep(Phase::kAwaitAck, Event::kLockDownFailed).verdict, Verdict::kLockDown);
}

TEST(RunMachine, NothingMovesADecidedRun) {
  for (const Phase phase : {Phase::kForcing, Phase::kExited}) {
    for (int event = 0; event < kEventCount; ++event) {
      EXPECT_EQ(NextStep(phase, static_cast<Event>(event)).phase, phase);
      EXPECT_EQ(NextStep(phase, static_cast<Event>(event)).action, Action::kNothing);
    }
  }
}

TEST(OneShot, U14StopSelection) {
  RunMachine both;
  EXPECT_TRUE(both.LatchStop(true, true));
  EXPECT_EQ(both.stop(), StopCause::kCancelled);
  RunMachine deadline;
  EXPECT_TRUE(deadline.LatchStop(false, true));
  EXPECT_EQ(deadline.stop(), StopCause::kDeadlineExceeded);
  RunMachine none;
  EXPECT_FALSE(none.LatchStop(false, false));
  EXPECT_EQ(none.stop(), StopCause::kNone);
}

TEST(RunMachine, LatchedStopNeverChanges) {
  RunMachine machine;
  EXPECT_TRUE(machine.LatchStop(false, true));
  EXPECT_FALSE(machine.LatchStop(true, true));
  EXPECT_EQ(machine.stop(), StopCause::kDeadlineExceeded);
}

TEST(RunMachine, HappyPath) {
  RunMachine machine;
  const std::vector<Event> events = {Event::kHelloAck, Event::kReady,    Event::kStarted,
                                     Event::kTrace,    Event::kTerminal, Event::kExited};
  for (const Event event : events) {
    EXPECT_FALSE(machine.ended());
    machine.Advance(event);
  }
  EXPECT_TRUE(machine.ended());
  EXPECT_TRUE(machine.ready());
  EXPECT_EQ(machine.verdict(), Verdict::kReported);
}

TEST(RunMachine, FirstVerdictStays) {
  RunMachine machine;
  machine.Advance(Event::kViolation);
  machine.Advance(Event::kExited);
  EXPECT_EQ(machine.verdict(), Verdict::kProtocol);
  EXPECT_EQ(machine.phase(), Phase::kForcing);
}

}  // namespace
}  // namespace bulkhead::supervise
