#include "cli/interrupt.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

namespace bulkhead::cli {
namespace {

constexpr int kPatienceMs = 30'000;  // a bound for a broken build, not an expectation

bool Becomes(const CancelToken& token) {
  pollfd wait{token.poll_fd(), POLLIN, 0};
  return poll(&wait, 1, kPatienceMs) == 1 && token.cancelled();
}

TEST(Interrupts, FirstSignalCancelsSecondForces) {
  const auto interrupts = Interrupts::Create();
  ASSERT_TRUE(interrupts);
  const CancelToken cancel = (*interrupts)->cancel();
  const CancelToken force = (*interrupts)->force();
  EXPECT_FALSE(cancel.cancelled());
  EXPECT_EQ((*interrupts)->first_signal(), 0);
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  ASSERT_TRUE(Becomes(cancel));
  EXPECT_FALSE(force.cancelled());
  EXPECT_EQ((*interrupts)->first_signal(), SIGTERM);
  ASSERT_EQ(kill(getpid(), SIGINT), 0);
  ASSERT_TRUE(Becomes(force));
  EXPECT_EQ((*interrupts)->first_signal(), SIGTERM);
}

TEST(Interrupts, AnIgnoredSignalStaysIgnored) {
  struct sigaction ignore{};
  struct sigaction old{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGHUP, &ignore, &old), 0);
  {
    const auto interrupts = Interrupts::Create();
    ASSERT_TRUE(interrupts);
    ASSERT_EQ(kill(getpid(), SIGHUP), 0);
    ASSERT_EQ(kill(getpid(), SIGINT), 0);
    ASSERT_TRUE(Becomes((*interrupts)->cancel()));
    EXPECT_EQ((*interrupts)->first_signal(), SIGINT);
    EXPECT_FALSE((*interrupts)->force().cancelled());
  }
  ASSERT_EQ(sigaction(SIGHUP, &old, nullptr), 0);
}

TEST(Interrupts, MaskIsRestored) {
  sigset_t before;
  sigset_t after;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  {
    ASSERT_TRUE(Interrupts::Create());
  }
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
  }
}

}  // namespace
}  // namespace bulkhead::cli
