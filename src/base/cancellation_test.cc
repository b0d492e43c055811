#include <bulkhead/cancellation.h>

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <cerrno>
#include <thread>

namespace bulkhead {
namespace {

bool Readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

TEST(Cancellation, DefaultTokenIsNeverCancelled) {
  const CancelToken token;
  EXPECT_FALSE(token.cancelled());
  EXPECT_EQ(token.poll_fd(), -1);
}

TEST(Cancellation, IsStickyAndLevelTriggered) {
  const CancelSource source = *CancelSource::Create();
  const CancelToken token = source.token();
  EXPECT_FALSE(token.cancelled());
  EXPECT_FALSE(Readable(token.poll_fd()));
  source.Cancel();
  source.Cancel();
  for (int look = 0; look < 2; ++look) {
    EXPECT_TRUE(token.cancelled());
    EXPECT_TRUE(Readable(token.poll_fd()));
  }
  EXPECT_TRUE(source.token().cancelled());
}

TEST(Cancellation, CopiesShareOneStateThatOutlivesTheSource) {
  CancelToken token;
  {
    const CancelSource source = *CancelSource::Create();
    const CancelSource copy = source;
    token = copy.token();
    copy.Cancel();
    EXPECT_TRUE(source.token().cancelled());
  }
  EXPECT_TRUE(token.cancelled());
  EXPECT_TRUE(Readable(token.poll_fd()));
}

TEST(Cancellation, WakesAWaitingThread) {
  const CancelSource source = *CancelSource::Create();
  std::thread waiter([token = source.token()] {
    pollfd entry{token.poll_fd(), POLLIN, 0};
    EXPECT_EQ(poll(&entry, 1, -1), 1);
    EXPECT_TRUE(token.cancelled());  // the flag is set before the descriptor tells
  });
  source.Cancel();
  waiter.join();
}

const CancelSource* signalled_source = nullptr;

void CancelOnSignal(int /*signal*/) {
  signalled_source->Cancel();
}

TEST(Cancellation, WorksFromASignalHandlerAndKeepsErrno) {
  const CancelSource source = *CancelSource::Create();
  signalled_source = &source;
  struct sigaction action{};
  action.sa_handler = CancelOnSignal;
  struct sigaction old_action{};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old_action), 0);
  errno = EXDEV;
  raise(SIGUSR1);
  EXPECT_EQ(errno, EXDEV);
  sigaction(SIGUSR1, &old_action, nullptr);
  EXPECT_TRUE(source.token().cancelled());
  EXPECT_TRUE(Readable(source.token().poll_fd()));
}

}  // namespace
}  // namespace bulkhead
