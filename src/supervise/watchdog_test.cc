#include "supervise/watchdog.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/wait_set.h"

namespace bulkhead::supervise {
namespace {

// A real child that does nothing until it is killed.
class Sleeper {
 public:
  Sleeper() {
    char program[] = "/bin/sleep";
    char seconds[] = "600";
    char* argv[] = {program, seconds, nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program, nullptr, nullptr, argv, nullptr), 0);
    pidfd_.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    EXPECT_TRUE(pidfd_.valid());
  }

  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  UniqueFd pidfd_copy() const { return UniqueFd(dup(pidfd_.get())); }

  bool EndsWithin(std::chrono::seconds bound) const {
    const MonotonicClock clock;
    WaitSet waits;
    waits.Add(pidfd_.borrow(), POLLIN, 0);
    return *waits.Wait(clock, Deadline::After(clock.Now(), bound));
  }

 private:
  pid_t pid_ = 0;
  UniqueFd pidfd_;
};

class WatchdogTest : public testing::Test {
 protected:
  MonotonicClock clock_;
  std::unique_ptr<Watchdog> watchdog_ = *Watchdog::Start(clock_);
};

TEST_F(WatchdogTest, KillsAfterDeadlineGraceAndSlack) {
  const Sleeper sleeper;
  const auto guard = *watchdog_->Arm(
      {sleeper.pidfd_copy(), Deadline::At(clock_.Now()), std::chrono::milliseconds(1), {}});
  EXPECT_TRUE(sleeper.EndsWithin(std::chrono::seconds(30)));
  EXPECT_TRUE(guard.fired());
  EXPECT_EQ(watchdog_->kills(), 1U);
}

TEST_F(WatchdogTest, CancelAloneStartsTheBound) {
  const Sleeper sleeper;
  const CancelSource cancel = *CancelSource::Create();
  const auto guard = *watchdog_->Arm(
      {sleeper.pidfd_copy(), Deadline::Never(), std::chrono::milliseconds(1), cancel.token()});
  cancel.Cancel();
  EXPECT_TRUE(sleeper.EndsWithin(std::chrono::seconds(30)));
  EXPECT_TRUE(guard.fired());
}

TEST_F(WatchdogTest, RunsThatShareATokenAreAllWatched) {
  const Sleeper one;
  const Sleeper two;
  const CancelSource cancel = *CancelSource::Create();
  const auto grace = std::chrono::milliseconds(1);
  const auto first = *watchdog_->Arm({one.pidfd_copy(), Deadline::Never(), grace, cancel.token()});
  const auto second = *watchdog_->Arm({two.pidfd_copy(), Deadline::Never(), grace, cancel.token()});
  cancel.Cancel();
  EXPECT_TRUE(one.EndsWithin(std::chrono::seconds(30)));
  EXPECT_TRUE(two.EndsWithin(std::chrono::seconds(30)));
}

TEST_F(WatchdogTest, DisarmedWorkerIsLeftAlone) {
  const Sleeper spared;
  const Sleeper killed;
  const Deadline due = Deadline::At(clock_.Now());
  {
    const auto guard =
        *watchdog_->Arm({spared.pidfd_copy(), due, std::chrono::milliseconds(1), {}});
  }
  const auto guard = *watchdog_->Arm({killed.pidfd_copy(), due, std::chrono::milliseconds(2), {}});
  EXPECT_TRUE(
      killed.EndsWithin(std::chrono::seconds(30)));  // its bound comes after the spared one's
  EXPECT_FALSE(spared.EndsWithin(std::chrono::seconds(0)));
  EXPECT_EQ(watchdog_->kills(), 1U);
}

}  // namespace
}  // namespace bulkhead::supervise
