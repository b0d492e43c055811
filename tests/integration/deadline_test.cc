// Deadlines hold whatever a guest does. By how much they are late is measured by wall_bench.
#include <gtest/gtest.h>
#include <signal.h>

#include "support/bulkhead_test.h"
#include "support/busy_guests.h"
#include "support/streams.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

using std::chrono::seconds;

class Bar : public BulkheadTest, public testing::WithParamInterface<BusyGuest> {};

TEST_P(Bar, R7DeadlineHolds) {
  if (!HaveWat2Wasm()) {
    GTEST_SKIP() << "missing: wat2wasm";
  }
  const BusyGuest& guest = GetParam();
  RunRequest request = GuestRequest();
  request.limits.deadline = seconds(1);  // by then it is at it, but on a very busy machine
  request.limits.threads_max = 64;
  request.limits.compile_time = kLongDeadline;
  request.worker.grace = kShortGrace;
  Pipe deaf = MakePipe();
  if (guest.deaf_stdout) {
    request.stdout_to = GuestStream::Descriptor(deaf.writer.get());
  }
  if (guest.stop_worker) {
    stages().At(Stage::kExecute, [](const RunEvent& event) { kill(event.worker_pid, SIGSTOP); });
  }
  const RunReport report = Run(Admit(guest.text), request);
  EXPECT_EQ(report.stop, StopCause::kDeadlineExceeded);
  EXPECT_TRUE(report.outcome.code == OutcomeCode::kDeadlineExceeded ||
              report.outcome.code == OutcomeCode::kForcedContainmentDeadlineExceeded)
      << report.outcome.CodeText();
  EXPECT_EQ(report.outcome.code == OutcomeCode::kForcedContainmentDeadlineExceeded,
            ColumnOf(report.ledger) == kForcedAfterGrace);
  EXPECT_EQ(report.masked_code, "");  // the worker's answer to the stop is no other outcome
  EXPECT_GE(report.elapsed, seconds(1));
  EXPECT_LT(report.elapsed, seconds(20));  // catches hangs only
}

INSTANTIATE_TEST_SUITE_P(Guest, Bar, testing::ValuesIn(BusyGuests()), TestNameOf);

}  // namespace
}  // namespace bulkhead::test
