#include "cli/render.h"

#include <gtest/gtest.h>

#include <csignal>

#include "cli/exit_status.h"

namespace bulkhead::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

RunRecord RecordOf(OutcomeCode code) {
  RunRecord record;
  record.report.outcome.code = code;
  record.report.elapsed = milliseconds(12);
  record.exit_status = ExitStatusOf(record.report.outcome, 0);
  return record;
}

std::string Plain(const RunRecord& record, const RunOptions& options = {}) {
  return RenderResult(record, options, false);
}

TEST(Render, CompletedRun) {
  RunRecord record = RecordOf(OutcomeCode::kWorkerCompleted);
  EXPECT_EQ(Plain(record), "bulkhead: completed in 12 ms\n");
  record.report.output = OutputReport{"/tmp/out.png", 42'000, "", true};
  EXPECT_EQ(Plain(record), "bulkhead: completed in 12 ms, wrote /tmp/out.png (41 KiB)\n");
}

TEST(Render, Stops) {
  RunOptions options;
  options.limits.deadline = seconds(5);
  RunRecord record = RecordOf(OutcomeCode::kForcedContainmentDeadlineExceeded);
  record.report.stop = StopCause::kDeadlineExceeded;
  EXPECT_EQ(Plain(record, options),
            "bulkhead: deadline of 5.0 s exceeded after 12 ms, the worker was killed\n");
  record = RecordOf(OutcomeCode::kCancelled);
  record.report.stop = StopCause::kCancelled;
  record.signal = SIGTERM;
  EXPECT_EQ(Plain(record), "bulkhead: cancelled by SIGTERM after 12 ms\n");
}

TEST(Render, GuestExitAndLimits) {
  RunRecord record = RecordOf(OutcomeCode::kNonzeroExit);
  record.report.outcome.guest_exit = 200;
  EXPECT_EQ(Plain(record), "bulkhead: the guest exited with 200 after 12 ms\n");
  record = RecordOf(OutcomeCode::kOutOfFuel);
  EXPECT_EQ(Plain(record), "bulkhead: out-of-fuel (--fuel sets this limit)\n");
  record = RecordOf(OutcomeCode::kOutOfMemory);
  record.report.diagnostic = "killed by the kernel";
  EXPECT_EQ(Plain(record), "bulkhead: out-of-memory: killed by the kernel\n");
}

TEST(Render, TrapShowsTheInnermostFrames) {
  RunRecord record = RecordOf(OutcomeCode::kTrapped);
  record.report.outcome.trap = TrapInfo{"unreachable", "wasm trap: unreachable", 0, {}};
  for (int i = 0; i < 10; ++i) {
    record.report.outcome.trap->backtrace.push_back("frame " + std::to_string(i));
  }
  const std::string text = Plain(record);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "bulkhead: the guest trapped: unreachable: wasm trap: unreachable");
  EXPECT_NE(text.find("\n    frame 0\n"), std::string::npos);
  EXPECT_EQ(text.find("frame 8"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n    ... 2 more frames are in the report\n"));
}

TEST(Render, RefusalsAndUnreadableModules) {
  RunRecord record = RecordOf(OutcomeCode::kModuleRefused);
  record.report.outcome.reason = "forbidden-import";
  record.report.diagnostic = "env.f is not offered";
  EXPECT_EQ(Plain(record), "bulkhead: module refused (forbidden-import): env.f is not offered\n");
  record.report.outcome.reason = kReasonNotFound;
  record.report.diagnostic = "cannot read the module: open 'x': No such file or directory";
  EXPECT_EQ(Plain(record),
            "bulkhead: cannot read the module: open 'x': No such file or directory\n");
}

TEST(Render, FailureShowsTheEndOfWhatTheWorkerSaid) {
  RunRecord record = RecordOf(OutcomeCode::kWorkerUnexpectedExit);
  record.report.diagnostic = "the worker ended without a result";
  record.report.worker_pid = 42;
  record.report.worker_exit = "signal 11 (Segmentation fault)";
  for (int i = 0; i < 12; ++i) {
    record.report.worker_stderr_tail += "line " + std::to_string(i) + "\n";
  }
  const std::string text = Plain(record);
  EXPECT_TRUE(text.starts_with(
      "bulkhead: worker-unexpected-exit: the worker ended without a result (worker: "
      "signal 11 (Segmentation fault))\n    worker: line 2\n"))
      << text;
  EXPECT_TRUE(text.ends_with("\n    worker: line 11\n")) << text;
}

TEST(Render, FailureBeforeAWorkerIsASentence) {
  RunRecord record = RecordOf(OutcomeCode::kWorkerOutputGrant);
  record.report.diagnostic = "--output: 'x' is a directory";
  EXPECT_EQ(Plain(record), "bulkhead: --output: 'x' is a directory\n");
}

TEST(Render, NothingHostileReachesTheTerminal) {
  const std::string hostile = "a\x1b[2J\x07\r\nb\xff";
  for (const OutcomeCode code :
       {OutcomeCode::kWorkerCompleted, OutcomeCode::kTrapped, OutcomeCode::kModuleRefused,
        OutcomeCode::kMemoryLimit, OutcomeCode::kWorkerProtocol}) {
    RunRecord record = RecordOf(code);
    record.report.outcome.reason = hostile;
    record.report.outcome.trap = TrapInfo{hostile, hostile, 0, {hostile}};
    record.report.output = OutputReport{hostile, 1, "", true};
    record.report.diagnostic = hostile;
    record.report.worker_exit = hostile;
    record.report.worker_stderr_tail = hostile;
    const std::string text = Plain(record);
    EXPECT_NE(text.find("\\x1b[2J"), std::string::npos) << text;
    for (const char c : text) {
      EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << text;
    }
  }
}

TEST(Render, QuietLeavesFailuresAlone) {
  RunOptions quiet;
  quiet.quiet = true;
  EXPECT_EQ(Plain(RecordOf(OutcomeCode::kWorkerCompleted), quiet), "");
  EXPECT_EQ(Plain(RecordOf(OutcomeCode::kNonzeroExit), quiet), "");
  EXPECT_NE(Plain(RecordOf(OutcomeCode::kTrapped), quiet), "");
  EXPECT_EQ(Plain(RecordOf(OutcomeCode::kStdoutClosed)), "");
}

TEST(Render, ColourMarksTheKindOfEnd) {
  EXPECT_TRUE(RenderResult(RecordOf(OutcomeCode::kWorkerCompleted), {}, true)
                  .starts_with("\x1b[32mbulkhead:\x1b[0m "));
  EXPECT_TRUE(RenderResult(RecordOf(OutcomeCode::kNonzeroExit), {}, true).starts_with("\x1b[33m"));
  EXPECT_TRUE(RenderResult(RecordOf(OutcomeCode::kTrapped), {}, true).starts_with("\x1b[31m"));
}

}  // namespace
}  // namespace bulkhead::cli
