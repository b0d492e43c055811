// One Runtime used by many threads at once. Runs under the thread sanitizer as well.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "support/bulkhead_test.h"
#include "support/proc_view.h"
#include "support/streams.h"

namespace bulkhead::test {
namespace {

// Suites are named after the page that numbers the case.
using OneShot = BulkheadTest;
using Case = BulkheadTest;

using std::chrono::milliseconds;

constexpr int kThreads = 16;

TEST_F(OneShot, SixteenRunsAtOnceKeepTheirStreamsApart) {
  const AdmittedModule module = EmptyModule();
  std::vector<std::thread> threads;
  std::atomic<int> completed{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const std::string content = "content of run " + std::to_string(i);
      for (int round = 0; round < 4; ++round) {
        const UniqueFd file = MemoryFile(content);
        RunRequest request = RequestFor("honest_echo");
        request.stdin_from = GuestStream::Descriptor(file.get());
        request.stdout_to = GuestStream::Capture(1000);
        const RunReport report = RunModule(runtime(), module, request);
        EXPECT_EQ(report.outcome.CodeText(), "worker-completed") << report.diagnostic;
        EXPECT_EQ(report.stdout_captured, content);
        completed += report.outcome.completed() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(completed, 4 * kThreads);
  EXPECT_EQ(ColumnOf(runtime().snapshot().workers),
            (LedgerColumn{4 * kThreads, 0, 0, 0, 4 * kThreads, 0}));
}

// Stops, faults and completions side by side; each gets its own outcome.
TEST_F(OneShot, DifferentEndsDoNotDisturbEachOther) {
  const std::vector<std::pair<const char*, const char*>> kinds = {
      {"honest_echo", "worker-completed"},
      {"garbage_magic", "worker-protocol"},
      {"crash_segv", "worker-unexpected-exit"},
      {"answers_cancelled", "cancelled"},
      {"ignores_cancel", "forced-containment-cancelled"},
      {"forks_child", "worker-completed"},
  };
  const auto kind_of = [&](int i) { return kinds[static_cast<std::size_t>(i) % kinds.size()]; };
  std::ptrdiff_t executing = 0;
  for (int i = 0; i < kThreads; ++i) {
    executing += kind_of(i).second == std::string_view("worker-protocol") ? 0 : 1;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto [worker, code] = kind_of(i);
      RunRequest request = RequestFor(worker);
      request.worker.grace =
          code == std::string_view("cancelled") ? milliseconds(60'000) : kShortGrace;
      RunHandle run = StartRun(runtime(), EmptyModule(), request).value();
      if (std::string_view(code).find("cancelled") != std::string_view::npos) {
        // Politely only once it executes: until then a cancel is a kill.
        EXPECT_TRUE(stages().WaitForAll(Stage::kExecute, executing));
        run.Cancel();
      }
      const RunReport report = run.Wait();
      EXPECT_EQ(report.outcome.CodeText(), code) << report.diagnostic;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(runtime().snapshot().workers.spawned, static_cast<std::uint64_t>(kThreads));
}

TEST_F(OneShot, PermitsAreNeverOversubscribed) {
  constexpr std::uint32_t kPermits = 3;
  RestartRuntime({.active_runs_max = kPermits, .observer = nullptr});
  std::atomic<int> completed{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 4; ++round) {
        EXPECT_LE(runtime().snapshot().active_runs, kPermits);
        const RunReport report = RunModule(runtime(), EmptyModule(), RequestFor("honest_echo"));
        completed += report.outcome.completed() ? 1 : 0;
        refused += report.outcome.code == OutcomeCode::kRootExecutionLimitExceeded ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(completed + refused, 4 * kThreads);
  EXPECT_GT(completed, 0);
}

// G27: pipes and sockets of one run are never inherited by another one's worker, however they
// interleave.
TEST_F(Case, G27ConcurrentSpawnsDoNotLeakIntoEachOther) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        RunRequest request = RequestFor("describes_itself");
        request.stdout_to = GuestStream::Capture(1U << 20);
        const RunReport report = RunModule(runtime(), EmptyModule(), request);
        EXPECT_TRUE(report.outcome.completed()) << report.outcome.CodeText();
        EXPECT_EQ(report.stdout_captured.find("\nfd4="), std::string::npos)
            << report.stdout_captured;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(OneShot, RuntimesDoNotShareCounters) {
  const std::unique_ptr<Runtime> other = Runtime::Create({}).value();
  ExpectOutcome(Run(RequestFor("honest_echo")), "worker-completed");
  EXPECT_EQ(ColumnOf(other->snapshot().workers), kNothing);
  EXPECT_TRUE(RunModule(*other, EmptyModule(), RequestFor("honest_echo")).outcome.completed());
  EXPECT_EQ(ColumnOf(other->snapshot().workers), kClean);
  EXPECT_EQ(ColumnOf(runtime().snapshot().workers), kClean);
}

}  // namespace
}  // namespace bulkhead::test
