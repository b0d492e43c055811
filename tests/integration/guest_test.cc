// Real guests in the real worker: what a module can do, and what its run ends as.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "support/bulkhead_test.h"
#include "support/program.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class OneShot : public BulkheadTest {
 protected:
  void SetUp() override {
    if (!HaveWat2Wasm()) {
      GTEST_SKIP() << "no wat2wasm";
    }
  }

  // tests/wasm/<name>.wat, with `word` replaced by `by`.
  static AdmittedModule Load(std::string_view name, std::string_view word = {},
                             std::string_view by = {}) {
    std::string text =
        ReadFile(std::string(BH_SOURCE_DIR) + "/tests/wasm/" + std::string(name) + ".wat");
    // The last occurrence: the earlier ones are in the comment that explains the word.
    if (const std::size_t at = text.rfind(word); !word.empty() && at != std::string::npos) {
      text.replace(at, word.size(), by);
    }
    return Admit(text);
  }

  RunRequest GuestRequestWithOutput() const {
    RunRequest request = GuestRequest();
    request.output = RequestWithOutput("").output;
    return request;
  }
};

// Cases of the collection of field reports.
using Case = OneShot;

TEST_F(OneShot, S1NormalCompletion) {
  const RunReport report = Run(Load("empty"), GuestRequest());
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.outcome.completed_as, CompletedAs::kStarted);
  EXPECT_FALSE(report.containment.empty());
  EXPECT_EQ(report.worker_stderr_tail, "");
}

TEST_F(OneShot, S2ExitZero) {
  const RunReport report = Run(Load("exit", "CODE", "0"), GuestRequest());
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.outcome.completed_as, CompletedAs::kExited);
  EXPECT_EQ(report.outcome.guest_exit, 0);
}

// G10: every code is the guest's own; none is mistaken for a deadline, a kill or a failure of ours.
TEST_F(Case, G10ExitCodesAreExact) {
  for (const int code : {1, 3, 119, 120, 124, 125, 126, 127, 130, 137, 139, 255, 256, 1000, -1}) {
    SCOPED_TRACE(code);
    const RunReport report = Run(Load("exit", "CODE", std::to_string(code)), GuestRequest());
    ExpectOutcome(report, "nonzero-exit", kClean);
    EXPECT_EQ(report.outcome.guest_exit, code);
    EXPECT_EQ(report.stop, StopCause::kNone);
  }
}

TEST_F(OneShot, S3TrapsNameTheirCause) {
  const std::vector<std::pair<const char*, const char*>> faults = {
      {"unreachable", "unreachable"},
      {"(drop (i32.load (i32.const 70000)))", "memory-out-of-bounds"},
      {"(drop (i32.load offset=4294967295 (i32.const 0)))", "memory-out-of-bounds"},
      {"(drop (i32.div_s (i32.const 1) (i32.const 0)))", "integer-division-by-zero"},
      {"(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))", "integer-overflow"},
      {"(drop (i32.trunc_f32_s (f32.const nan)))", "bad-conversion-to-integer"},
      {"(drop (call $recurse))", "stack-overflow"},
      {"(call_indirect (type $none) (i32.const 1))", "indirect-call-to-null"},
      {"(call_indirect (type $none) (i32.const 0))", "bad-signature"},
      {"(call_indirect (type $none) (i32.const 2))", "table-out-of-bounds"},
  };
  for (const auto& [fault, code] : faults) {
    SCOPED_TRACE(fault);
    const RunReport report = Run(Load("trap", "FAULT", fault), GuestRequest());
    ExpectOutcome(report, "trapped", kClean);
    ASSERT_TRUE(report.outcome.trap);
    EXPECT_EQ(report.outcome.trap->code, code);
    EXPECT_FALSE(report.outcome.trap->message.empty());
    EXPECT_FALSE(report.outcome.trap->backtrace.empty());
    EXPECT_LE(report.outcome.trap->backtrace.size(), 64U);
  }
}

TEST_F(OneShot, S4FuelRunsOut) {
  RunRequest request = GuestRequest();
  request.limits.fuel = 10'000;
  for (const char* guest : {"spin", "start_spin"}) {
    SCOPED_TRACE(guest);
    const RunReport report = Run(Load(guest), request);
    ExpectOutcome(report, "out-of-fuel", kClean);
  }
  ExpectOutcome(Run(Load("empty"), request), "worker-completed", kClean);
}

TEST_F(OneShot, S5CooperativeCancel) {
  for (const char* guest : {"spin", "start_spin"}) {
    SCOPED_TRACE(guest);
    const RunReport report = RunCancelledInExecute(Load(guest), GuestRequest());
    ExpectOutcome(report, "cancelled", kPoliteStop);
  }
}

TEST_F(OneShot, S6CooperativeDeadline) {
  RunRequest request = GuestRequest();
  request.limits.deadline = seconds(1);
  const RunReport report = Run(Load("spin"), request);
  ExpectOutcome(report, "deadline-exceeded");
  EXPECT_EQ(report.ledger.grace_expired + report.ledger.forced, 0U);
  EXPECT_LE(report.ledger.cancel_sent, 1U);
  EXPECT_GE(report.elapsed, milliseconds(900));
}

TEST_F(OneShot, StopModeKillNeedsNoCooperation) {
  RunRequest request = GuestRequest();
  request.limits.cooperative_stop = false;
  request.limits.deadline = seconds(1);
  ExpectOutcome(Run(Load("spin"), request), "forced-containment-deadline-exceeded", kForcedAtOnce);
}

// G02: host calls that wait end with the stop, without force.
TEST_F(Case, G02WaitsInHostCallsAreStopped) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd silent(ends[0]);
  const UniqueFd writer(ends[1]);
  for (const char* guest : {"sleep", "read_stdin"}) {
    SCOPED_TRACE(guest);
    RunRequest request = GuestRequest();
    request.stdin_from = GuestStream::Descriptor(silent.get());
    ExpectOutcome(RunCancelledInExecute(Load(guest), request), "cancelled", kPoliteStop);
    request.limits.deadline = seconds(1);
    const RunReport report = Run(Load(guest), request);
    ExpectOutcome(report, "deadline-exceeded");
    EXPECT_EQ(report.ledger.forced, 0U);
    EXPECT_LT(report.elapsed, seconds(10));
  }
}

TEST_F(OneShot, S8SequentialStressOfRealGuests) {
  const AdmittedModule empty = Load("empty");
  const AdmittedModule spin = Load("spin");
  const AdmittedModule trap = Load("trap", "FAULT", "unreachable");
  for (int round = 0; round < 3; ++round) {
    ExpectOutcome(Run(empty, GuestRequest()), "worker-completed", kClean);
    ExpectOutcome(Run(trap, GuestRequest()), "trapped", kClean);
    ExpectOutcome(RunCancelledInExecute(spin, GuestRequest()), "cancelled", kPoliteStop);
  }
}

TEST_F(OneShot, StdinReachesStdout) {
  const std::string content(200'000, 'c');
  const std::string path = dir().Write("input", content);
  const UniqueFd input(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  RunRequest request = GuestRequest();
  request.stdin_from = GuestStream::Descriptor(input.get());
  request.stdout_to = GuestStream::Capture(1U << 20);
  const RunReport report = Run(Load("read_stdin"), request);
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.stdout_captured, content);
}

TEST_F(OneShot, StdoutLimitEndsTheRun) {
  RunRequest request = GuestRequest();
  request.limits.stdout_bytes_max = 100'000;
  request.stdout_to = GuestStream::Capture(1U << 20);
  const RunReport report = Run(Load("flood_stdout"), request);
  ExpectOutcome(report, "stdout-limit");
  EXPECT_EQ(report.stdout_captured.size(), 100'000U);
}

TEST_F(OneShot, AReaderThatLeavesEndsTheRun) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  std::thread head([&] {
    char first = 0;
    EXPECT_EQ(read(reader.get(), &first, 1), 1);
    reader.Reset();
  });
  RunRequest request = GuestRequest();
  request.stdout_to = GuestStream::Descriptor(writer.get());
  const RunReport report = Run(Load("flood_stdout"), request);
  head.join();
  ExpectOutcome(report, "stdout-closed");
}

TEST_F(Case, G36LargeArgumentsAndVariablesArriveExactly) {
  RunRequest request = GuestRequest();
  request.stdout_to = GuestStream::Capture(4U << 20);
  for (const std::size_t bytes : {131'000U, 131'072U, 1'000'000U}) {
    SCOPED_TRACE(bytes);
    const std::string argument(bytes, 'a');
    const std::string variable = "BIG=" + std::string(bytes, 'b');
    request.arguments = {"guest", argument};
    request.environment = {variable};
    const RunReport report = Run(Load("print_args"), request);
    ExpectOutcome(report, "worker-completed", kClean);
    const std::string nul(1, '\0');
    EXPECT_TRUE(report.stdout_captured ==
                fmt::format("guest{0}{1}{0}{2}{0}", nul, argument, variable));
  }
}

TEST_F(OneShot, S11OutputOfARealGuestIsPublished) {
  const RunReport report = Run(Load("write_output", "END", "nop"), GuestRequestWithOutput());
  ExpectOutcome(report, "worker-completed", kClean);
  ExpectPublished("guest output");
}

TEST_F(OneShot, OnlySuccessfulGuestsPublish) {
  const std::vector<std::pair<const char*, const char*>> ends = {
      {"unreachable", "trapped"},
      {"(call $proc_exit (i32.const 3))", "nonzero-exit"},
  };
  for (const auto& [end, code] : ends) {
    SCOPED_TRACE(end);
    ExpectOutcome(Run(Load("write_output", "END", end), GuestRequestWithOutput()), code, kClean);
    ExpectDestinationUntouched();
  }
  ExpectOutcome(RunCancelledInExecute(Load("write_output", "END", "(loop $again (br $again))"),
                                      GuestRequestWithOutput()),
                "cancelled", kPoliteStop);
  ExpectDestinationUntouched();
}

TEST_F(OneShot, N20RealGuestCompletesWithoutAnOutput) {
  ExpectOutcome(Run(Load("empty"), GuestRequestWithOutput()), "worker-output-commit", kClean);
  ExpectDestinationUntouched();
}

// G05: who has run into its own memory limit is told so, and the machine does not pay for it.
TEST_F(Case, G05RefusedGrowthIsReported) {
  constexpr std::uint64_t kCap = 64U << 20;
  RunRequest request = GuestRequest();
  request.limits.memory_bytes = kCap;
  const std::vector<std::pair<const char*, const char*>> reactions = {
      {"(unreachable)", "trapped"},
      {"(call $proc_exit (i32.const 9))", "nonzero-exit"},
  };
  for (const auto& [reaction, code] : reactions) {
    SCOPED_TRACE(reaction);
    const RunReport report = Run(Load("grow", "REFUSED", reaction), request);
    ExpectOutcome(report, code, kClean);
    EXPECT_TRUE(report.memory_growth_refused);
    EXPECT_LE(report.guest_memory_bytes_peak, kCap);
    EXPECT_LT(report.memory_peak_bytes, kCap + (192U << 20));
  }
}

// A small cap does not keep a one-page guest from starting (G12).
TEST_F(Case, G12SmallCapsStillStart) {
  RunRequest request = GuestRequest();
  request.limits.memory_bytes = 64U << 10;
  ExpectOutcome(Run(Load("empty"), request), "worker-completed", kClean);
  request.limits.memory_bytes = 64U << 20;
  ExpectOutcome(Run(Load("empty"), request), "worker-completed", kClean);
}

TEST_F(OneShot, TablesAreBoundedToo) {
  RunRequest request = GuestRequest();
  request.limits.memory_bytes = 64U << 20;
  const RunReport report = Run(Load("grow_table"), request);
  EXPECT_FALSE(report.outcome.completed());
  EXPECT_TRUE(report.outcome.guest_exit == 9 || report.outcome.code == OutcomeCode::kMemoryLimit)
      << report.outcome.CodeText();
  EXPECT_LT(report.memory_peak_bytes, 400ULL << 20);
}

// 300 nested loops around 300 locals that all change: 5 KiB that keep the compiler busy for half a
// minute.
std::vector<std::uint8_t> CompileBomb() {
  constexpr int kDepth = 300;
  std::string text = "(module (memory (export \"memory\") 1) (func (export \"_start\")";
  std::string loops;
  std::string body;
  std::string ends;
  for (int i = 0; i < kDepth; ++i) {
    text += fmt::format(" (local $l{} i64)", i);
    loops += fmt::format(" (loop $b{}", i);
    body += fmt::format(" (local.set $l{0} (i64.add (local.get $l{0}) (local.get $l{1})))", i,
                        (i + 1) % kDepth);
    ends.insert(0, fmt::format(" (br_if $b{0} (i32.wrap_i64 (local.get $l{0}))))", i));
  }
  return AssembleText(fmt::format("{}{}{}{}))", text, loops, body, ends));
}

TEST_F(OneShot, CompileBombsEndAtTheDeadline) {
  RunRequest request = GuestRequest();
  request.limits.deadline = seconds(1);
  request.worker.grace = kShortGrace;
  const RunReport report = Run(Admit(CompileBomb()), request);
  EXPECT_TRUE(report.outcome.code == OutcomeCode::kDeadlineExceeded ||
              report.outcome.code == OutcomeCode::kForcedContainmentDeadlineExceeded)
      << report.outcome.CodeText() << ": " << report.diagnostic;
  EXPECT_NE(report.stage, Stage::kExecute);
  EXPECT_LT(report.elapsed, seconds(10));
}

TEST_F(OneShot, CompilingHasAMemoryBudgetOfItsOwn) {
  RunRequest request = GuestRequest();
  request.limits.compile_memory_bytes = 16U << 20;  // the least that is accepted
  const RunReport report = Run(Admit(CompileBomb()), request);
  ExpectOutcome(report, "compile-limit");
  EXPECT_NE(report.diagnostic.find("was refused while the module was compiled"), std::string::npos)
      << report.diagnostic;
}

TEST_F(OneShot, CpuTimeIsLimited) {
  RunRequest request = GuestRequest();
  request.limits.cpu_time = seconds(1);
  const RunReport report = Run(Load("spin"), request);
  ExpectOutcome(report, "cpu-limit");
  EXPECT_LT(report.elapsed, seconds(30));
}

// N14: many guests at once, each within its own bounds.
TEST_F(OneShot, SixteenColdStartsAtOnceSucceed) {
  const AdmittedModule module = Load("print_args");
  constexpr int kRuns = 16;
  std::vector<std::thread> threads;
  threads.reserve(kRuns);
  for (int i = 0; i < kRuns; ++i) {
    threads.emplace_back([&, i] {
      RunRequest request = GuestRequest();
      request.arguments = {"guest", std::to_string(i)};
      request.stdout_to = GuestStream::Capture(100);
      const RunReport report = RunModule(runtime(), module, request);
      EXPECT_EQ(report.outcome.CodeText(), "worker-completed") << report.diagnostic;
      EXPECT_EQ(report.stdout_captured,
                std::string("guest\0", 6) + std::to_string(i) + std::string(1, '\0'));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(OneShot, TextIsConvertedInAWorker) {
  const std::string text = ReadFile(std::string(BH_SOURCE_DIR) + "/tests/wasm/empty.wat");
  const ModuleSource source =
      ModuleSource::FromBytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()},
                              1U << 20)
          .value();
  ASSERT_TRUE(source.LooksLikeText());
  Result<ModuleSource> converted = ConvertText(runtime(), source, GuestRequest());
  ASSERT_TRUE(converted.has_value()) << converted.error().message;
  ExpectOutcome(Run(std::move(*converted).Admit({}).value(), GuestRequest()), "worker-completed",
                kClean);

  const std::string broken = "(module (func $f (nonsense)))";
  const ModuleSource bad =
      ModuleSource::FromBytes({reinterpret_cast<const std::uint8_t*>(broken.data()), broken.size()},
                              1U << 20)
          .value();
  const Result<ModuleSource> refused = ConvertText(runtime(), bad, GuestRequest());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kModuleRefused);
  EXPECT_EQ(refused.error().reason, "invalid-text");
}

}  // namespace
}  // namespace bulkhead::test
