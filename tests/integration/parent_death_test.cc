// Two-level harness: a host program (support/inner_run.cc) holds a worker, and one of the two dies.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "support/bulkhead_test.h"
#include "support/chaos.h"
#include "support/proc_view.h"
#include "support/program.h"
#include "support/sketch_module.h"
#include "support/soak.h"
#include "support/temp_dir.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

using std::chrono::seconds;

constexpr seconds kGoneBound{10};

struct WorkerIdentity {
  pid_t pid = 0;
  std::uint64_t start_time = 0;

  bool Gone() const {
    return Eventually(kGoneBound, [this] { return !StillRuns(pid, start_time); });
  }
};

std::string InnerRun() {
  return std::string(BH_TEST_WORKER_DIR) + "/inner_run";
}

std::string Worker(const std::string& name) {
  return std::string(BH_TEST_WORKER_DIR) + "/" + name;
}

// Reads stage lines until the guest executes.
std::optional<WorkerIdentity> AwaitExecuting(Program& host) {
  for (;;) {
    const std::optional<std::string> line = host.ReadLine();
    if (!line) {
      return std::nullopt;
    }
    std::istringstream words(*line);
    std::string word;
    std::string stage;
    WorkerIdentity worker;
    words >> word >> stage >> worker.pid >> worker.start_time;
    if (word == "stage" && stage == "execute") {
      return worker;
    }
  }
}

// What "finish" prints after the stages.
std::vector<std::string> AwaitReport(Program& host) {
  std::vector<std::string> lines;
  while (const std::optional<std::string> line = host.ReadLine()) {
    if (!line->starts_with("stage ")) {
      lines.push_back(*line);
    }
  }
  return lines;
}

class OneShot : public testing::Test {
 protected:
  // Orphans come to us, and not to a process 1 that might behave differently from machine to
  // machine.
  void SetUp() override { ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }

  void TearDown() override {
    EXPECT_TRUE(Eventually(kGoneBound, [] { return !OrphanRuns(); }))
        << "an orphan is still running";
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

  // Reaps the dead ones on the way.
  static bool OrphanRuns() {
    bool runs = false;
    for (const ProcessView& process : AllProcesses()) {
      if (process.parent == getpid() && process.zombie()) {
        waitpid(process.pid, nullptr, WNOHANG);
      } else if (process.parent == getpid()) {
        runs = true;
      }
    }
    return runs;
  }

  // Every output is whole, old or new; after one more run in the directory nothing else is there.
  void ExpectDiskIsClearedByTheNextStart() {
    const std::unique_ptr<Runtime> runtime = Runtime::Create({}).value();
    RunRequest request;
    request.worker.executable = Worker("honest_echo");
    request.output = OutputGrant{};
    request.output->path = dir_.Path("of-the-next");
    EXPECT_TRUE(RunModule(*runtime, EmptyModule(), request).outcome.completed());
    for (const std::string& name : dir_.Entries()) {
      EXPECT_FALSE(name.starts_with(".bulkhead-staging-")) << name;
      const std::string content = ReadFile(dir_.Path(name));
      EXPECT_TRUE(content.empty() || content == Chaos::kOldContent || content == Chaos::kNewContent)
          << name << ": " << content;
    }
  }

  TempDir dir_;
};

// Cases of the collection of field reports.
using Case = OneShot;
using Bar = OneShot;

TEST_F(OneShot, S13CrashOfTheExactWorkerIsAnUnexpectedExit) {
  Program host({InnerRun(), "finish", Worker("ignores_cancel"), dir_.path()});
  const std::optional<WorkerIdentity> worker = AwaitExecuting(host);
  ASSERT_TRUE(worker);
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, worker->pid, 0)));
  ASSERT_TRUE(pidfd.valid());
  ASSERT_TRUE(StillRuns(worker->pid, worker->start_time));  // so the descriptor is that worker's
  ASSERT_EQ(syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0), 0);
  const std::vector<std::string> expected = {"code worker-unexpected-exit", "ledger 1 0 0 0 1 0",
                                             "done"};
  EXPECT_EQ(AwaitReport(host), expected);
  EXPECT_EQ(host.Wait(), 0);
  EXPECT_TRUE(worker->Gone());
}

// FX-wait: a sketch that nothing but a signal ends.
std::vector<std::string> SketchHost(const std::string& mode, const TempDir& dir) {
  std::vector<std::uint8_t> bytes = AssembleText(SketchText(SketchFixture("wait")));
  for (const char c : SketchSections()) {
    bytes.push_back(static_cast<std::uint8_t>(c));
  }
  const std::string module = dir.Write("wait.wasm", std::string(bytes.begin(), bytes.end()));
  return {InnerRun(), mode, std::string(BH_BIN_DIR) + "/" + std::string(kWasmWorkerName),
          dir.path(), module};
}

TEST_F(OneShot, S13CrashOfASketchsWorkerIsAnUnexpectedExit) {
  if (!HaveWat2Wasm()) {
    GTEST_SKIP() << "no wat2wasm";
  }
  Program host(SketchHost("finish", dir_));
  const std::optional<WorkerIdentity> worker = AwaitExecuting(host);
  ASSERT_TRUE(worker);
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, worker->pid, 0)));
  ASSERT_TRUE(StillRuns(worker->pid, worker->start_time));
  ASSERT_EQ(syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0), 0);
  const std::vector<std::string> expected = {"code worker-unexpected-exit", "ledger 1 0 0 0 1 0",
                                             "done"};
  EXPECT_EQ(AwaitReport(host), expected);
  EXPECT_EQ(host.Wait(), 0);
  EXPECT_TRUE(worker->Gone());
}

TEST_F(OneShot, S14SketchsWorkersDoNotOutliveAHostThatExits) {
  if (!HaveWat2Wasm()) {
    GTEST_SKIP() << "no wat2wasm";
  }
  Program host(SketchHost("exit", dir_));
  const std::optional<WorkerIdentity> worker = AwaitExecuting(host);
  ASSERT_TRUE(worker);
  host.WriteLine("go");
  EXPECT_EQ(host.Wait(), 0);
  EXPECT_TRUE(worker->Gone());
}

// The first thread of a process waits in ppoll(2).
bool IsPolling(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/syscall");
  int number = -1;
  return file >> number && number == SYS_ppoll;
}

// The worker answered and left before the parent had anything to say to it: what the parent then
// cannot send must not cost it what it has not read yet.
TEST_F(OneShot, AnAnswerIsReadAlsoWhenTheStopCanNoLongerBeSent) {
  Program host({InnerRun(), "finish-soon", Worker("completes_when_parent_stops"), dir_.path()});
  const std::optional<WorkerIdentity> worker = AwaitExecuting(host);
  ASSERT_TRUE(worker);
  // Stopped anywhere else it might read the answer before it looks at the clock.
  ASSERT_TRUE(Eventually(kGoneBound, [&] { return IsPolling(host.pid()); }));
  host.Kill(SIGSTOP);
  EXPECT_TRUE(Eventually(kGoneBound, [&] {
    const std::optional<ProcessView> view = ViewProcess(worker->pid);
    return view && view->zombie();
  }));
  Eventually(std::chrono::milliseconds(1500), [] { return false; });  // the deadline passes
  host.Kill(SIGCONT);
  const std::vector<std::string> lines = AwaitReport(host);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.front(), "code deadline-exceeded");
  EXPECT_EQ(host.Wait(), 0);
}

TEST_F(OneShot, S14WorkersDoNotOutliveAHostThatExits) {
  Program host({InnerRun(), "exit", Worker("ignores_cancel"), dir_.path()});
  const std::optional<WorkerIdentity> worker = AwaitExecuting(host);
  ASSERT_TRUE(worker);
  host.WriteLine("go");
  EXPECT_EQ(host.Wait(), 0);
  EXPECT_TRUE(worker->Gone());
  EXPECT_TRUE(NobodyHoldsAliveLock(dir_.path()));
}

TEST_F(OneShot, N17WorkersDoNotOutliveAKilledHost) {
  Program host({InnerRun(), "finish", Worker("ignores_cancel"), dir_.path()});
  const std::optional<WorkerIdentity> worker = AwaitExecuting(host);
  ASSERT_TRUE(worker);
  host.Kill(SIGKILL);
  EXPECT_EQ(host.Wait(), -SIGKILL);
  EXPECT_TRUE(worker->Gone());
  EXPECT_TRUE(NobodyHoldsAliveLock(dir_.path()));
}

// G33: the worker belongs to the process, not to the thread that asked for it.
TEST_F(OneShot, N17WorkersOutliveTheThreadThatStartedThem) {
  Program host({InnerRun(), "ended-thread", Worker("answers_cancelled"), dir_.path()});
  const std::optional<WorkerIdentity> worker = AwaitExecuting(host);
  ASSERT_TRUE(worker);
  EXPECT_TRUE(StillRuns(worker->pid, worker->start_time));
  host.WriteLine("go");
  const std::vector<std::string> expected = {"code cancelled", "ledger 1 1 0 0 1 0", "done"};
  EXPECT_EQ(AwaitReport(host), expected);
  EXPECT_EQ(host.Wait(), 0);
}

TEST_F(OneShot, N17HostsMayBeProcessOneOfANamespace) {
  Program probe({"unshare", "--pid", "--fork", "--mount-proc", "true"});
  if (probe.Wait() != 0) {
    GTEST_SKIP() << "no PID namespace to be had here";
  }
  Program host({"unshare", "--pid", "--fork", "--mount-proc", InnerRun(), "finish",
                Worker("honest_echo"), dir_.path()});
  const std::vector<std::string> expected = {"code worker-completed", "ledger 1 0 0 0 1 0", "done"};
  EXPECT_EQ(AwaitReport(host), expected);
  EXPECT_EQ(host.Wait(), 0);
}

// G16: killed after every line it prints, i.e. at every stage, and at moments in between.
TEST_F(Case, G16NoWorkerSurvivesAKilledHost) {
  for (int round = 0; round < 30; ++round) {
    Program host({InnerRun(), "finish", Worker("ignores_cancel"), dir_.path()});
    for (int line = 0; line < round % 6; ++line) {
      if (!host.ReadLine(seconds(5))) {
        break;
      }
    }
    host.Kill(SIGKILL);
    EXPECT_EQ(host.Wait(), -SIGKILL);
    ASSERT_TRUE(Eventually(kGoneBound, [] { return !OrphanRuns(); })) << "round " << round;
  }
}

// R2: killed at any moment of a mixed load. What it leaves on disk, the next start takes away.
TEST_F(Bar, R2NothingSurvivesAKilledHost) {
  const std::uint64_t seed = AnnouncedSeed();
  std::mt19937_64 random(seed);
  const int rounds = Rounds(25, 1000);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    Program host({std::string(BH_TEST_WORKER_DIR) + "/chaos_host", dir_.path(),
                  std::to_string(random()), "until-killed"});
    for (std::uint64_t lines = random() % 3; lines > 0; --lines) {
      ASSERT_EQ(host.ReadLine(), "round");
    }
    // The moment itself, not a wait for anything.
    Eventually(std::chrono::milliseconds(random() % 200), [] { return false; });
    host.Kill(SIGKILL);
    EXPECT_EQ(host.Wait(), -SIGKILL);
    ASSERT_TRUE(Eventually(kGoneBound, [] { return !OrphanRuns(); }));
    ExpectDiskIsClearedByTheNextStart();
  }
}

// The harness itself: with nobody killed everything is well.
TEST_F(OneShot, UndisturbedHostsCompleteTheirRuns) {
  Program host({InnerRun(), "finish", Worker("honest_echo"), dir_.path()});
  const std::vector<std::string> expected = {"code worker-completed", "ledger 1 0 0 0 1 0", "done"};
  EXPECT_EQ(AwaitReport(host), expected);
}

}  // namespace
}  // namespace bulkhead::test
