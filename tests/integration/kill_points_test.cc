// Workers that are killed, or stopped, at every point of a run that has a name. After all of it the
// process is what it was before.
#include <bulkhead/code_cache.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "support/bulkhead_test.h"
#include "support/busy_guests.h"
#include "support/proc_view.h"
#include "support/program.h"
#include "support/soak.h"
#include "support/streams.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct KillPoint {
  std::string_view worker;  // tests/workers/stands_still.cc
  Stage stage = Stage::kExecute;
  bool with_cache = false;    // so that a worker which only compiles comes first
  bool when_asked = false;    // reached once the worker was asked to stop
  bool has_reported = false;  // a stop no longer matters
};

void PrintTo(const KillPoint& point, std::ostream* stream) {
  *stream << point.worker;
}

std::string NameOf(const testing::TestParamInfo<KillPoint>& info) {
  return std::string(info.param.worker);
}

constexpr KillPoint kPoints[] = {
    {"stands_at_start", Stage::kHandshake},
    {"stands_in_hello", Stage::kHandshake},
    {"stands_at_hello", Stage::kHandshake},
    {"stands_in_hello_ack", Stage::kHandshake},
    {"stands_greeted", Stage::kHandOver},
    {"stands_in_execute", Stage::kHandOver},
    {"stands_compiling", Stage::kHandOver},
    {"stands_in_ready", Stage::kHandOver},
    {.worker = "stands_in_code", .stage = Stage::kCompile, .with_cache = true},
    {"stands_instantiated", Stage::kCompile},
    {"stands_in_input"},
    {"stands_running"},
    {"spins"},
    {"floods_output"},
    {"stands_in_output"},
    {"stands_in_terminal"},
    {.worker = "stands_after_terminal", .stage = Stage::kReap, .has_reported = true},
    {.worker = "in_grace", .stage = Stage::kStop, .when_asked = true},
};

void Signal(const UniqueFd& process, int signal) {
  syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

class AtKillPoint : public BulkheadTest, public testing::WithParamInterface<KillPoint> {
 protected:
  void SetUp() override {
    ASSERT_EQ(mkfifo(dir().Path("reached").c_str(), 0600), 0);
    // For writing too: the pipe has no end of file then, whoever leaves.
    reached_.Reset(open(dir().Path("reached").c_str(), O_RDWR | O_CLOEXEC));
    if (GetParam().with_cache) {
      RuntimeOptions options;
      options.code_cache = CodeCache::Open({.directory = dir().Path("cache")}).value();
      RestartRuntime(options);
    }
  }

  void TearDown() override {
    if (GetParam().with_cache) {
      RestartRuntime({});
    }
    EXPECT_EQ(ReadFile(Destination()), "original");
    stdin_ = {};
    stdout_ = {};
    reached_.Reset();
    BulkheadTest::TearDown();
  }

  // Everything a worker can be given, so that whatever is lost would be missed.
  RunRequest Request() {
    RunRequest request = RequestWithOutput(GetParam().worker);
    request.worker.working_directory = dir().path();
    stdin_ = MakePipe();
    stdout_ = MakePipe();
    EXPECT_EQ(write(stdin_.writer.get(), "input", 5), 5);
    request.stdin_from = GuestStream::Descriptor(stdin_.reader.get());
    request.stdout_to = GuestStream::Descriptor(stdout_.writer.get());
    request.stderr_to = GuestStream::Capture(1000);
    return request;
  }

  // The run has started with a log of its own: waits until the worker is where its name says, and
  // the run knows how far that is. false: the run ended before.
  bool ReachesPoint(RunHandle& run) {
    if (GetParam().when_asked) {
      EXPECT_TRUE(stages().WaitFor(Stage::kExecute));
      run.Cancel();
    }
    std::array<pollfd, 2> either = {pollfd{reached_.get(), POLLIN, 0}, {run.poll_fd(), POLLIN, 0}};
    EXPECT_GT(poll(either.data(), either.size(), 30'000), 0);
    char byte = 0;
    if ((either[0].revents & POLLIN) == 0 || read(reached_.get(), &byte, 1) != 1) {
      return false;
    }
    return stages().WaitFor(GetParam().stage).has_value();
  }

  // The reader of stdout is not who keeps the run from its end.
  void TakeOutputUntilTheEnd(const RunHandle& run) {
    std::array<pollfd, 2> either = {pollfd{stdout_.reader.get(), POLLIN, 0},
                                    {run.poll_fd(), POLLIN, 0}};
    while (poll(either.data(), either.size(), 30'000) > 0 && (either[1].revents & POLLIN) == 0) {
      std::array<char, 65536> taken;
      ASSERT_GT(read(stdout_.reader.get(), taken.data(), taken.size()), 0);
    }
  }

  // The worker and its init. It is not reaped before it has ended, so the number is still its.
  std::vector<UniqueFd> OpenTree() {
    std::vector<UniqueFd> tree;
    std::vector<pid_t> pids = {stages().events().back().worker_pid};
    while (!pids.empty()) {
      tree.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, pids.front(), 0)));
      pids = ChildrenOf(pids.front());
    }
    return tree;
  }

 private:
  Pipe stdin_;
  Pipe stdout_;
  UniqueFd reached_;
};

// By force, and as the kernel does when memory is short, in turn.
TEST_P(AtKillPoint, R1NothingIsLeft) {
  const KillPoint point = GetParam();
  const int rounds = Rounds(18, 560);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    RunRequest request = Request();
    request.worker.grace = seconds(60);
    const CancelSource force = *CancelSource::Create();
    request.force = force.token();
    stages().Clear();
    RunHandle run = StartRun(runtime(), EmptyModule(), request).value();
    ASSERT_TRUE(ReachesPoint(run));
    const bool forced = round % 2 == 0 && !point.has_reported;
    if (forced) {
      force.Cancel();
    } else {
      Signal(OpenTree().front(), SIGKILL);
    }
    TakeOutputUntilTheEnd(run);
    const RunReport report = run.Wait();
    CheckAfterRun(report);
    ExpectOutcome(report, forced ? "forced-containment-cancelled" : "worker-unexpected-exit",
                  {1, point.when_asked ? 1U : 0U, 0, forced ? 1U : 0U, 1, 0});
  }
}

// A worker that the host's administrator, or a freezer, has stopped; and one that is woken and
// stopped again while it is killed.
TEST_P(AtKillPoint, R21StoppedWorkersEndAtTheDeadline) {
  const int rounds = Rounds(2, 50);
  milliseconds deadline(200);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    RunRequest request = Request();
    request.limits.deadline = deadline;
    request.worker.grace = milliseconds(20);
    stages().Clear();
    RunHandle run = StartRun(runtime(), EmptyModule(), request).value();
    if (!ReachesPoint(run)) {  // a busy machine: once more, with more time
      CheckAfterRun(run.Wait());
      deadline *= 2;
      --round;
      continue;
    }
    const std::vector<UniqueFd> tree = OpenTree();
    while (!BecomesReadable(run.poll_fd(), milliseconds(0))) {
      for (const UniqueFd& process : tree) {
        Signal(process, SIGSTOP);
      }
      BecomesReadable(run.poll_fd(), milliseconds(round % 2 == 0 ? 10'000 : 1));
      for (const UniqueFd& process : tree) {
        Signal(process, SIGCONT);
      }
    }
    const RunReport report = run.Wait();
    CheckAfterRun(report);
    ExpectOutcome(report, GetParam().has_reported ? "worker-lingered"
                          : GetParam().when_asked ? "forced-containment-cancelled"
                                                  : "forced-containment-deadline-exceeded");
  }
}

INSTANTIATE_TEST_SUITE_P(Bar, AtKillPoint, testing::ValuesIn(kPoints), NameOf);

// The real worker, in each of the ways in which its guests do not end.
class BusyWorker : public BulkheadTest, public testing::WithParamInterface<BusyGuest> {};

TEST_P(BusyWorker, R1NothingIsLeft) {
  if (!HaveWat2Wasm()) {
    GTEST_SKIP() << "no wat2wasm";
  }
  const AdmittedModule module = Admit(GetParam().text);
  const Pipe deaf = MakePipe();
  const int rounds = Rounds(3, 60);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const CancelSource force = *CancelSource::Create();
    RunRequest request = GuestRequest();
    request.force = force.token();
    request.limits.threads_max = 64;
    if (GetParam().deaf_stdout) {
      request.stdout_to = GuestStream::Descriptor(deaf.writer.get());
    }
    stages().At(round % 3 == 0 || GetParam().never_starts ? Stage::kCompile : Stage::kExecute,
                [&](const RunEvent&) { force.Cancel(); });
    ExpectOutcome(Run(module, request), "forced-containment-cancelled", kForcedAtOnce);
  }
}

INSTANTIATE_TEST_SUITE_P(Bar, BusyWorker, testing::ValuesIn(BusyGuests()), TestNameOf);

using Bar = BulkheadTest;

// Spares that nobody needs any more, and spares that somebody else kills.
TEST_F(Bar, R1NothingIsLeftOfSpares) {
  const RunRequest like = RequestFor("honest_echo");
  const int rounds = Rounds(18, 560);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    ASSERT_TRUE(KeepWarm(runtime(), like, 2));
    ASSERT_TRUE(Eventually(seconds(30), [&] { return runtime().snapshot().warm.idle == 2; }));
    if (round % 2 == 0) {
      kill(ChildrenOf(getpid()).front(), SIGKILL);
    }
    ASSERT_TRUE(KeepWarm(runtime(), like, 0));
    ASSERT_TRUE(Eventually(seconds(30), [] { return ChildrenOf(getpid()).empty(); }));
  }
}

// All is written, the worker is gone, and the run is stopped before it publishes.
TEST_F(Bar, R1NothingIsLeftOfWhatWasStaged) {
  const int rounds = Rounds(18, 560);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const CancelSource force = *CancelSource::Create();
    RunRequest request = RequestWithOutput("honest_echo");
    request.force = force.token();
    stages().At(Stage::kPublish, [&](const RunEvent&) { force.Cancel(); });
    ExpectOutcome(Run(request), "cancelled", kClean);
    ExpectDestinationUntouched();
  }
}

}  // namespace
}  // namespace bulkhead::test
