#include "base/proc_stat.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/unique_fd.h"

namespace bulkhead {
namespace {

// Fields 3 to 22 of a real line.
constexpr std::string_view kTail =
    " S 7 42 43 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 5 0 987654321 2000 300 18446744073709551615";

TEST(OneShot, I2StatLineWithParenthesesAndSpacesInTheName) {
  const auto stat = ParseProcStat("42 (has ) spaces) S 1 (x)" + std::string(kTail));
  ASSERT_TRUE(stat) << stat.error().message;
  EXPECT_EQ(stat->pid, 42);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->group, 42);
  EXPECT_EQ(stat->session, 43);
  EXPECT_EQ(stat->thread_count, 5U);
  EXPECT_EQ(stat->start_time, 987654321U);
}

TEST(ProcStat, MalformedLinesAreRefused) {
  const std::string good = "42 (cat)" + std::string(kTail);
  ASSERT_TRUE(ParseProcStat(good));
  EXPECT_FALSE(ParseProcStat(""));
  EXPECT_FALSE(ParseProcStat("42"));
  EXPECT_FALSE(ParseProcStat("x (cat)" + std::string(kTail)));
  EXPECT_FALSE(ParseProcStat("42 (cat" + std::string(kTail)));
  EXPECT_FALSE(ParseProcStat(good.substr(0, good.find("987654321"))));
  EXPECT_FALSE(ParseProcStat("42 )(cat" + std::string(kTail)));
}

TEST(ProcStat, ZombieMainThreadOfALivingProcessIsNotDead) {
  ProcStat stat;
  stat.state = 'Z';
  stat.thread_count = 2;
  EXPECT_FALSE(stat.dead());
  stat.thread_count = 1;
  EXPECT_TRUE(stat.dead());
}

TEST(ProcStat, MemoryLinesInBytes) {
  const auto use = ParseMemoryUse(
      "Name:\tx\nVmHWM:\t    20 kB\nVmRSS:\t  10 kB\nRssAnon:\t 7 kB\nVmData:\t 30 kB\n");
  ASSERT_TRUE(use);
  EXPECT_EQ(use->rss_bytes, 10U * 1024);
  EXPECT_EQ(use->rss_bytes_peak, 20U * 1024);
  EXPECT_EQ(use->data_bytes, 30U * 1024);
  EXPECT_EQ(use->anonymous_rss_bytes, 7U * 1024);
  EXPECT_EQ(ParseMemoryUse("Name:\tx\n")->data_bytes, 0U);
  EXPECT_FALSE(ParseMemoryUse("\nVmRSS:\tmany kB\n"));
}

TEST(ProcStat, OwnProcess) {
  const auto stat = ReadProcStat(getpid());
  ASSERT_TRUE(stat) << stat.error().message;
  EXPECT_EQ(stat->pid, getpid());
  EXPECT_EQ(stat->parent, getppid());
  EXPECT_EQ(stat->session, getsid(0));
  EXPECT_GT(ReadMemoryUse(getpid())->rss_bytes, 0U);
  EXPECT_TRUE(Alive(stat->identity()));
  EXPECT_EQ(ReadOwnProcStat()->identity(), stat->identity());
}

TEST(ProcStat, ZombieAndOtherStartTimeAreNotAlive) {
  const ProcessIdentity self = *IdentityOf(getpid());
  EXPECT_FALSE(Alive({self.pid, self.start_time + 1}));

  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    char c = 0;
    _exit(read(reader.get(), &c, 1) == 1 ? 0 : 1);
  }
  const ProcessIdentity identity = *IdentityOf(child);
  EXPECT_TRUE(Alive(identity));
  EXPECT_EQ(write(writer.get(), "x", 1), 1);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(Alive(identity));
  EXPECT_EQ(ReadProcStat(child)->state, 'Z');
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED), 0);
  EXPECT_FALSE(Alive(identity));
  EXPECT_EQ(ReadProcStat(child).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace bulkhead
