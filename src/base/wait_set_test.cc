#include "base/wait_set.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "base/event_fd.h"

namespace bulkhead {
namespace {

using std::chrono::milliseconds;

constexpr int kFirst = 10;
constexpr int kSecond = 20;

class WaitSetTest : public testing::Test {
 protected:
  Deadline In(milliseconds budget) const { return Deadline::After(clock_.Now(), budget); }

  MonotonicClock clock_;
  EventFd first_ = *EventFd::Create();
  EventFd second_ = *EventFd::Create();
  WaitSet set_;
};

TEST_F(WaitSetTest, SaysWhoIsReady) {
  set_.Add(first_.fd(), POLLIN, kFirst);
  set_.Add(second_.fd(), POLLIN, kSecond);
  second_.Signal();
  EXPECT_TRUE(*set_.Wait(clock_, Deadline::Never()));
  EXPECT_EQ(set_.Ready(kFirst), 0);
  EXPECT_EQ(set_.Ready(kSecond), POLLIN);
  EXPECT_EQ(set_.Ready(99), 0);
}

TEST_F(WaitSetTest, TimesOutNotBeforeTheDeadline) {
  set_.Add(first_.fd(), POLLIN, kFirst);
  const Deadline deadline = In(milliseconds(20));
  EXPECT_FALSE(*set_.Wait(clock_, deadline));
  EXPECT_TRUE(deadline.PassedAt(clock_.Now()));
  EXPECT_EQ(set_.Ready(kFirst), 0);
}

// A deadline that has passed is no excuse for overlooking an event that is there.
TEST_F(WaitSetTest, ReportsReadinessEvenPastTheDeadline) {
  first_.Signal();
  set_.Add(first_.fd(), POLLIN, kFirst);
  EXPECT_TRUE(*set_.Wait(clock_, Deadline::At(clock_.Now() - milliseconds(1))));
  EXPECT_EQ(set_.Ready(kFirst), POLLIN);
}

TEST_F(WaitSetTest, EmptySetJustWaits) {
  EXPECT_FALSE(*set_.Wait(clock_, In(milliseconds(1))));
}

TEST_F(WaitSetTest, IgnoresInvalidDescriptors) {
  set_.Add(BorrowedFd(), POLLIN, kFirst);
  set_.Add(second_.fd(), POLLIN, kSecond);
  second_.Signal();
  EXPECT_TRUE(*set_.Wait(clock_, Deadline::Never()));
  EXPECT_EQ(set_.Ready(kFirst), 0);
  EXPECT_EQ(set_.Ready(kSecond), POLLIN);
}

TEST_F(WaitSetTest, ClearForgetsEverything) {
  first_.Signal();
  set_.Add(first_.fd(), POLLIN, kFirst);
  set_.Clear();
  EXPECT_FALSE(*set_.Wait(clock_, In(milliseconds(1))));
  EXPECT_EQ(set_.Ready(kFirst), 0);
}

TEST_F(WaitSetTest, HangUpIsReportedWithoutBeingAskedFor) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  writer.Reset();
  set_.Add(reader.borrow(), POLLIN, kFirst);
  EXPECT_TRUE(*set_.Wait(clock_, Deadline::Never()));
  EXPECT_NE(set_.Ready(kFirst) & POLLHUP, 0);
}

std::atomic<int> interruptions{0};

void CountInterruption(int /*signal*/) {
  interruptions.fetch_add(1);
}

// Signals arrive every millisecond: each interrupts the wait, none may end it early or extend it
// for ever.
TEST_F(WaitSetTest, SignalsDoNotEndTheWait) {
  struct sigaction action{};
  action.sa_handler = CountInterruption;
  struct sigaction old_action{};
  ASSERT_EQ(sigaction(SIGALRM, &action, &old_action), 0);
  const itimerval every_millisecond{{0, 1000}, {0, 1000}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &every_millisecond, nullptr), 0);

  set_.Add(first_.fd(), POLLIN, kFirst);
  const Deadline deadline = In(milliseconds(50));
  const Result<bool> ready = set_.Wait(clock_, deadline);
  const bool passed = deadline.PassedAt(clock_.Now());

  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &old_action, nullptr);
  ASSERT_TRUE(ready.has_value());
  EXPECT_FALSE(*ready);
  EXPECT_TRUE(passed);
  EXPECT_GT(interruptions.load(), 0);
}

}  // namespace
}  // namespace bulkhead
