// Hosts that are not as tidy as one would like, under mixed load (support/chaos_host.cc): every
// outcome is right, and nothing hangs or stays.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/bystanders.h"
#include "support/proc_view.h"
#include "support/program.h"
#include "support/soak.h"
#include "support/temp_dir.h"

namespace bulkhead::test {
namespace {

std::string ChaosHost() {
  return std::string(BH_TEST_WORKER_DIR) + "/chaos_host";
}

// Until its output ends.
std::vector<std::string> LinesOf(Program& host) {
  std::vector<std::string> lines;
  while (const std::optional<std::string> line = host.ReadLine(std::chrono::hours(2))) {
    lines.push_back(*line);
  }
  return lines;
}

class HostHabit : public testing::TestWithParam<std::string> {};

// Somebody else takes the exit statuses of its children, or has the kernel drop them.
TEST_P(HostHabit, R20OutcomesAreRight) {
  const TempDir dir;
  Program host({ChaosHost(), dir.path(), std::to_string(AnnouncedSeed()), GetParam(),
                std::to_string(Rounds(100, 5000))});
  EXPECT_EQ(LinesOf(host), std::vector<std::string>{"done"});
  EXPECT_EQ(host.Wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Bar, HostHabit,
                         testing::Values("as-it-is", "sigchld-ignored", "sigchld-no-wait",
                                         "sigchld-handler", "foreign-wait"),
                         [](const testing::TestParamInfo<std::string>& habit) {
                           std::string name = habit.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

int NumberAfter(const std::string& word, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (line.starts_with(word + " ")) {
      return std::stoi(line.substr(word.size() + 1));
    }
  }
  return 0;
}

TEST(Bystanders, NoticeASignal) {
  Bystanders bystanders(2);
  EXPECT_TRUE(bystanders.Replace());
  for (const pid_t pid : ChildrenOf(getpid())) {
    kill(pid, SIGWINCH);  // which by itself does nothing
  }
  EXPECT_FALSE(bystanders.Replace());
  EXPECT_FALSE(bystanders.Replace());
  EXPECT_TRUE(bystanders.Replace());
}

TEST(Bar, R19NoSignalReachesTheNextOwnerOfANumber) {
  const int runs = Rounds(800, 60'000);
  Program probe({"unshare", "--pid", "--fork", "--mount-proc", "true"});
  if (probe.Wait() != 0) {
    GTEST_SKIP() << "missing: the right to make a pid namespace";
  }
  const TempDir dir;
  Program host({"unshare", "--pid", "--fork", "--mount-proc", ChaosHost(), dir.path(),
                std::to_string(AnnouncedSeed()), "few-numbers", std::to_string(runs)});
  const std::vector<std::string> lines = LinesOf(host);
  const std::optional<int> exit = host.Wait();
  ASSERT_FALSE(lines.empty());
  if (exit == 77) {
    GTEST_SKIP() << lines.front();
  }
  EXPECT_EQ(exit, 0) << testing::PrintToString(lines);
  EXPECT_EQ(lines.back(), "done");
  EXPECT_GT(NumberAfter("spawned", lines), runs / 2);
  EXPECT_GT(NumberAfter("reused", lines), runs / 20);  // else nothing was tested
}

}  // namespace
}  // namespace bulkhead::test
