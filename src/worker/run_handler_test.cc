#include "worker/run_handler.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace bulkhead::worker {
namespace {

using std::chrono::microseconds;

std::unique_ptr<RunControl> MakeControl() {
  Result<std::unique_ptr<RunControl>> control = RunControl::Create();
  EXPECT_TRUE(control.has_value());
  return *std::move(control);
}

bool Readable(BorrowedFd fd) {
  pollfd entry{fd.get(), POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(RunControl, TheFirstStopCounts) {
  const auto control = MakeControl();
  EXPECT_FALSE(control->stop());
  EXPECT_FALSE(Readable(control->stop_event()));
  EXPECT_TRUE(control->Stop(StopCause::kDeadlineExceeded));
  EXPECT_FALSE(control->Stop(StopCause::kCancelled));
  EXPECT_EQ(control->stop(), StopCause::kDeadlineExceeded);
  EXPECT_TRUE(Readable(control->stop_event()));
}

TEST(RunControl, NothingBeginsAfterAStop) {
  const auto control = MakeControl();
  EXPECT_TRUE(control->Stop(StopCause::kCancelled));
  EXPECT_FALSE(control->Begin(microseconds(1)));
  EXPECT_FALSE(control->began());
}

TEST(RunControl, ProgressIsReported) {
  const auto control = MakeControl();
  EXPECT_TRUE(control->Begin(microseconds(5)));
  EXPECT_EQ(control->began(), microseconds(5));
  EXPECT_TRUE(control->progress().Drain());
  EXPECT_FALSE(control->TakeEnd());
  control->Finish(MakeTerminal(wire::Terminal::Kind::kTrapped, "why"));
  EXPECT_TRUE(control->progress().Drain());
  const std::optional<RunEnd> end = control->TakeEnd();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->terminal.diagnostic, "why");
  EXPECT_FALSE(end->threads_left);
}

TEST(RunControl, TheFirstEndCounts) {
  const auto control = MakeControl();
  control->EndNow(MakeTerminal(wire::Terminal::Kind::kTrapped, "first"));
  control->Finish(MakeTerminal(wire::Terminal::Kind::kCompleted, "second"));
  const std::optional<RunEnd> end = control->TakeEnd();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->terminal.diagnostic, "first");
  EXPECT_TRUE(end->threads_left);
  control->Finish(MakeTerminal(wire::Terminal::Kind::kCompleted, "third"));
  EXPECT_FALSE(control->TakeEnd());
}

TEST(WireText, IsOneBoundedLineOfPrintableUtf8) {
  EXPECT_EQ(WireText("a\n\n  b\tc\x1b[31m"), "a b c\\x1b[31m");
  EXPECT_EQ(WireText("caf\xC3\xA9", 4), "caf");
  EXPECT_EQ(WireText("caf\xC3\xA9", 5), "caf\xC3\xA9");
  EXPECT_EQ(WireText(std::string(2000, 'x')).size(), wire::kDiagnosticBytesMax);
  EXPECT_LE(WireText(std::string(2000, '\x01')).size(), wire::kDiagnosticBytesMax);
}

}  // namespace
}  // namespace bulkhead::worker
