// Real guests with threads, profile wasi-threads, through the whole product.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "support/bulkhead_test.h"
#include "support/program.h"
#include "support/streams.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kSpin = "(loop $spin (br $spin))";
constexpr std::string_view kWaitForever =
    "(drop (memory.atomic.wait32 (i32.const 1024) (i32.const 0) (i64.const -1)))";
constexpr std::string_view kSpawn = "(drop (call $spawn (i32.const 0)))";

class OneShot : public BulkheadTest {
 protected:
  void SetUp() override {
    if (!HaveWat2Wasm()) {
      GTEST_SKIP() << "no wat2wasm";
    }
  }

  // `start` is the body of _start, `thread` that of every thread; $spawn and $exit can be called.
  static AdmittedModule Threaded(std::string_view start, std::string_view thread,
                                 std::string_view memory = "1 16 shared") {
    return Admit(fmt::format(
        R"((module
          (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
          (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
          (import "wasi_snapshot_preview1" "fd_write"
            (func $write (param i32 i32 i32 i32) (result i32)))
          (import "env" "memory" (memory {}))
          (func (export "_start") (local $i i32) {})
          (func (export "wasi_thread_start") (param $id i32) (param $argument i32) {})))",
        memory, start, thread));
  }
};

// Cases of the collection of field reports.
using Case = OneShot;

TEST_F(OneShot, ThreadsOfAnOrdinaryGuest) {
  const std::string both = fmt::format("{0}{0}", kSpawn) +
                           R"((loop $again
           (local.set $i (i32.atomic.load (i32.const 0)))
           (if (i32.ne (local.get $i) (i32.const 3)) (then
             (drop (memory.atomic.wait32 (i32.const 0) (local.get $i) (i64.const -1)))
             (br $again)))))";
  const RunReport report = Run(Threaded(both, R"(
      (drop (i32.atomic.rmw.add (i32.const 0) (local.get $id)))
      (drop (memory.atomic.notify (i32.const 0) (i32.const 1))))"),
                               GuestRequest());
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.guest_memory_bytes_peak, 65536U);
}

TEST_F(OneShot, TheEndOfTheFirstThreadEndsAll) {
  for (const std::string_view thread : {kSpin, kWaitForever}) {
    const RunReport report = Run(Threaded(kSpawn, thread), GuestRequest());
    ExpectOutcome(report, "worker-completed", kClean);
    EXPECT_LT(report.elapsed, seconds(20));
  }
}

TEST_F(Case, TrapsOfThreadsAreNotLost) {
  const std::string start = fmt::format("{}{}", kSpawn, kWaitForever);
  const RunReport report = Run(Threaded(start, "unreachable"), GuestRequest());
  ExpectOutcome(report, "trapped", kClean);
  ASSERT_TRUE(report.outcome.trap);
  EXPECT_EQ(report.outcome.trap->thread, 1U);
  EXPECT_EQ(report.outcome.trap->code, "unreachable");
  EXPECT_FALSE(report.outcome.trap->backtrace.empty());
}

TEST_F(Case, G02AtomicWaitNeedsForceAndGetsIt) {
  RunRequest request = GuestRequest();
  request.worker.grace = kShortGrace;
  request.limits.deadline = seconds(1);  // by then it waits
  const RunReport report = Run(Threaded(kWaitForever, ""), request);
  ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAfterGrace);
  EXPECT_LT(report.elapsed, seconds(10));

  // Between the byte it writes and the wait nothing looks whether it is to stop.
  Pipe said = MakePipe();
  request.limits.deadline = kLongDeadline;
  request.stdout_to = GuestStream::Descriptor(said.writer.get());
  const std::string says_and_waits = fmt::format(
      "(i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 1))"
      "(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))) {}",
      kWaitForever);
  RunHandle run = StartRun(runtime(), Threaded(says_and_waits, ""), request).value();
  char byte = 0;
  EXPECT_EQ(read(said.reader.get(), &byte, 1), 1);
  run.Cancel();
  const RunReport cancelled = run.Wait();
  CheckAfterRun(cancelled);
  ExpectOutcome(cancelled, "forced-containment-cancelled", kForcedAfterGrace);
}

TEST_F(OneShot, AStopIsCooperativeWhereOneThreadCanAnswer) {
  const std::string start = fmt::format("{}{}", kSpawn, kWaitForever);
  ExpectOutcome(RunCancelledInExecute(Threaded(start, kSpin), GuestRequest()), "cancelled",
                kPoliteStop);
}

// The first variant of G13 is in guest_test.cc: a memory that is not shared.
TEST_F(Case, G13SharedMemoryIsCapped) {
  RunRequest request = GuestRequest();
  request.limits.memory_bytes = 16U << 20;
  const AdmittedModule grows = Threaded(
      R"((loop $again
           (local.set $i (memory.grow (i32.const 16)))
           (if (i32.eq (local.get $i) (i32.const -1)) (then (call $exit (i32.const 9))))
           (memory.fill (i32.shl (local.get $i) (i32.const 16)) (i32.const 1) (i32.const 1048576))
           (br $again)))",
      "", "1 65536 shared");
  const RunReport report = Run(grows, request);
  ExpectOutcome(report, "nonzero-exit", kClean);
  EXPECT_EQ(report.outcome.guest_exit, 9);
  EXPECT_LE(report.guest_memory_bytes_peak, 16U << 20);
  EXPECT_LT(report.memory_peak_bytes, (16U + 192U) << 20);
}

TEST_F(Case, G37ThreadFloodsEndAtTheLimit) {
  const std::string flood = R"(
      (loop $again
        (if (i32.gt_s (call $spawn (i32.const 0)) (i32.const 0)) (then
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 100000))))))
      (call $exit (local.get $i)))";
  const RunReport report = Run(Threaded(flood, kWaitForever), GuestRequest());
  ExpectOutcome(report, "nonzero-exit", kClean);
  EXPECT_EQ(report.outcome.guest_exit, 16);
  RunRequest many = GuestRequest();
  many.limits.threads_max = 200;
  EXPECT_EQ(Run(Threaded(flood, kWaitForever), many).outcome.guest_exit, 200);
}

// Every wait on another address makes the engine remember it; the whole process is limited, so that
// this is the guest's own problem.
TEST_F(Case, G38MemoryTheEngineTakesForTheGuestIsLimitedToo) {
  RunRequest request = GuestRequest();
  request.limits.memory_bytes = 64U << 20;
  const AdmittedModule waits = Threaded(
      R"((loop $forever
           (drop (memory.atomic.wait32 (local.get $i) (i32.const 0) (i64.const 0)))
           (local.set $i (i32.and (i32.add (local.get $i) (i32.const 4)) (i32.const 0x3ffffff)))
           (br $forever)))",
      "", "1024 1024 shared");
  request.limits.deadline = seconds(20);
  const RunReport report = Run(waits, request);
  EXPECT_LT(report.memory_peak_bytes, 400ULL << 20);
  EXPECT_TRUE(report.outcome.code == OutcomeCode::kMemoryLimit ||
              report.stop == StopCause::kDeadlineExceeded)
      << report.outcome.CodeText() << ": " << report.diagnostic;
}

TEST_F(OneShot, FuelIsOneBudgetForAllThreads) {
  RunRequest request = GuestRequest();
  request.limits.fuel = 1'000'000;
  const std::string start = fmt::format("{}{}", kSpawn, kWaitForever);
  ExpectOutcome(Run(Threaded(start, kSpin), request), "out-of-fuel", kClean);
}

}  // namespace
}  // namespace bulkhead::test
