// A host that is careless with its descriptors and starts workers from many threads at once: every
// worker and every init has its own descriptors and nothing else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/bulkhead_test.h"
#include "support/proc_view.h"
#include "support/program.h"

namespace bulkhead::test {
namespace {

constexpr std::size_t kLooseDescriptors = 500;
constexpr std::size_t kThreads = 8;

using Table = std::map<int, std::string>;  // descriptor -> what it refers to

Table DescriptorsOf(pid_t pid) {
  Table table;
  std::error_code gone;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
    table.emplace(std::stoi(entry.path().filename()),
                  std::filesystem::read_symlink(entry.path(), gone).string());
  }
  return table;
}

std::set<int> Numbers(const Table& table) {
  std::set<int> numbers;
  for (const auto& [number, target] : table) {
    numbers.insert(number);
  }
  return numbers;
}

// Pipes and sockets exist once: whoever else has one could hold it open.
std::set<std::string> Channels(const Table& table) {
  std::set<std::string> channels;
  for (const auto& [number, target] : table) {
    if (target.starts_with("pipe:") || target.starts_with("socket:")) {
      channels.insert(target);
    }
  }
  return channels;
}

class Inheritance : public BulkheadTest {
 protected:
  void SetUp() override {
    getrlimit(RLIMIT_NOFILE, &old_limit_);
    const rlimit limit{old_limit_.rlim_max, old_limit_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }

  void TearDown() override {
    loose_.clear();
    BulkheadTest::TearDown();
    setrlimit(RLIMIT_NOFILE, &old_limit_);
  }

  // Pipes and directories without close-on-exec; false if the machine allows fewer.
  bool OpenLooseDescriptors() {
    while (loose_.size() < kLooseDescriptors) {
      int ends[2];
      // NOLINTNEXTLINE(android-cloexec-pipe): inheritable on purpose
      if (pipe(ends) != 0) {
        return false;
      }
      loose_.emplace_back(ends[0]);
      loose_.emplace_back(ends[1]);
      // NOLINTNEXTLINE(android-cloexec-open): inheritable on purpose
      loose_.emplace_back(open("/", O_RDONLY | O_DIRECTORY));
    }
    return loose_.back().valid();
  }

 private:
  rlimit old_limit_{};
  std::vector<UniqueFd> loose_;
};

using Bar = Inheritance;

// A run whose worker hangs, with a pipe of its own as the guest's stdout.
struct HangingRun {
  CancelSource stop = *CancelSource::Create();
  UniqueFd reader;
  UniqueFd writer;
  RunReport report;
  std::thread thread;
};

// What a worker or its init holds; each channel must be new to `held`.
void ExpectExactly(const std::set<int>& numbers, pid_t pid, std::set<std::string>& held) {
  const Table table = DescriptorsOf(pid);
  EXPECT_EQ(Numbers(table), numbers) << testing::PrintToString(table);
  for (const std::string& channel : Channels(table)) {
    EXPECT_TRUE(held.insert(channel).second) << channel << " has two holders";
  }
}

TEST_F(Bar, R13WorkersHoldTheirOwnDescriptorsOnly) {
  if (!OpenLooseDescriptors()) {
    GTEST_SKIP() << "missing: a limit of open files above " << kLooseDescriptors;
  }
  const AdmittedModule module = EmptyModule();
  std::vector<HangingRun> runs(kThreads);
  for (HangingRun& run : runs) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);  // NOLINT(android-cloexec-pipe): inheritable on purpose
    run.reader.Reset(ends[0]);
    run.writer.Reset(ends[1]);
    RunRequest request = RequestFor("ignores_cancel");
    request.force = run.stop.token();
    request.stdout_to = GuestStream::Descriptor(run.writer.get());
    run.thread = std::thread(
        [this, &run, &module, request] { run.report = RunModule(runtime(), module, request); });
  }
  EXPECT_TRUE(stages().WaitForAll(Stage::kExecute, kThreads));
  std::set<std::string> held;
  for (const RunEvent& event : stages().events()) {
    if (event.stage != Stage::kExecute) {
      continue;
    }
    // /dev/null twice, stderr, the channel; then the module and the guest's stdout.
    ExpectExactly({0, 1, 2, 3, 4, 5}, event.worker_pid, held);
    const std::optional<ProcessView> worker = ViewProcess(event.worker_pid);
    ASSERT_TRUE(worker);
    if (worker->parent != getpid()) {  // an init, with its one socket
      ExpectExactly({16}, worker->parent, held);
    }
  }
  // Each pipe ends with its own worker, while the others live.
  for (HangingRun& run : runs) {
    run.stop.Cancel();
    run.thread.join();
    CheckAfterRun(run.report);
    run.writer.Reset();
    EXPECT_TRUE(BecomesReadable(run.reader.get(), std::chrono::seconds(20)));
    char byte = 0;
    EXPECT_EQ(fcntl(run.reader.get(), F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(read(run.reader.get(), &byte, 1), 0);
  }
}

}  // namespace
}  // namespace bulkhead::test
