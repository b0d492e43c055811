// The guest's standard streams: captured, relayed, limited, abandoned.
#include "support/streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "support/bulkhead_test.h"
#include "support/program.h"

namespace bulkhead::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Bytes that differ at every offset of a page and from page to page.
std::string Pattern(std::size_t bytes) {
  std::string pattern(bytes, '\0');
  std::uint32_t value = 1;
  for (char& c : pattern) {
    value = value * 1664525 + 1013904223;
    c = static_cast<char>(value >> 24);
  }
  return pattern;
}

class OneShot : public BulkheadTest {
 protected:
  // honest_echo copies `file` to its stdout.
  static RunRequest Echo(const UniqueFd& file) {
    RunRequest request = RequestFor("honest_echo");
    request.stdin_from = GuestStream::Descriptor(file.get());
    return request;
  }
};

// Cases of the collection of field reports.
using Case = OneShot;

TEST_F(OneShot, CaptureKeepsTheBytes) {
  const std::string content("a\0b\xFF\n", 5);
  const UniqueFd file = MemoryFile(content);
  RunRequest request = Echo(file);
  request.stdout_to = GuestStream::Capture(100);
  const RunReport report = Run(request);
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.stdout_captured, content);
  EXPECT_EQ(report.stdout_bytes, content.size());
  EXPECT_EQ(report.stdout_undelivered_bytes, 0U);
  EXPECT_EQ(report.stderr_bytes, 0U);
}

TEST_F(OneShot, CaptureKeepsTheFirstBytesAndCountsAll) {
  const std::string content = Pattern(3U << 20);
  const UniqueFd file = MemoryFile(content);
  RunRequest request = Echo(file);
  request.stdout_to = GuestStream::Capture(1000);
  const RunReport report = Run(request);
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.stdout_captured, content.substr(0, 1000));
  EXPECT_EQ(report.stdout_bytes, content.size());
}

TEST_F(OneShot, NoStreamsMeanEndOfFileAndNothing) {
  const RunReport report = Run(RequestFor("honest_echo"));
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.stdout_bytes, 0U);
  EXPECT_EQ(report.stdout_captured, "");
}

TEST_F(OneShot, AHundredMegabytesReachAPipeReaderUnchanged) {
  const std::string content = Pattern(100U << 20);
  const UniqueFd file = MemoryFile(content);
  Pipe pipe = MakePipe();
  std::string received;
  std::thread reader([&] { received = ReadAll(pipe.reader.borrow()); });
  RunRequest request = Echo(file);
  request.stdout_to = GuestStream::Descriptor(pipe.writer.get());
  const RunReport report = Run(request);
  pipe.writer.Reset();
  reader.join();
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.stdout_bytes, content.size());
  EXPECT_EQ(report.stdout_undelivered_bytes, 0U);
  EXPECT_TRUE(received == content);
}

TEST_F(OneShot, FilesAndSocketsReceiveEverything) {
  const std::string content = Pattern(2U << 20);
  {
    const UniqueFd file = MemoryFile(content);
    const UniqueFd target(open(dir().Path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    RunRequest request = Echo(file);
    request.stdout_to = GuestStream::Descriptor(target.get());
    ExpectOutcome(Run(request), "worker-completed", kClean);
    EXPECT_TRUE(ReadFile(dir().Path("out")) == content);
  }
  const UniqueFd file = MemoryFile(content);
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd here(ends[0]);
  UniqueFd there(ends[1]);
  std::string received;
  std::thread reader([&] { received = ReadAll(here.borrow()); });
  RunRequest request = Echo(file);
  request.stdout_to = GuestStream::Descriptor(there.get());
  ExpectOutcome(Run(request), "worker-completed", kClean);
  there.Reset();
  reader.join();
  EXPECT_TRUE(received == content);
}

TEST_F(OneShot, BorrowedDescriptorsAreLeftAsTheyWere) {
  const UniqueFd file = MemoryFile("content");
  Pipe pipe = MakePipe();
  RunRequest request = Echo(file);
  request.stdout_to = GuestStream::Descriptor(pipe.writer.get());
  const int in_flags = fcntl(file.get(), F_GETFL);
  const int out_flags = fcntl(pipe.writer.get(), F_GETFL);
  ExpectOutcome(Run(request), "worker-completed", kClean);
  EXPECT_EQ(fcntl(file.get(), F_GETFL), in_flags);
  EXPECT_EQ(fcntl(pipe.writer.get(), F_GETFL), out_flags);
  pipe.writer.Reset();
  EXPECT_EQ(ReadAll(pipe.reader.borrow()), "content");
}

TEST_F(OneShot, InvalidDescriptorsAreRefused) {
  for (const bool output : {false, true}) {
    RunRequest request = RequestFor("honest_echo");
    (output ? request.stdout_to : request.stdin_from) = GuestStream::Descriptor(987);
    const RunReport report = Run(request);
    ExpectOutcome(report, "worker-invalid-configuration", kNothing);
    EXPECT_FALSE(report.diagnostic.empty());
  }
}

// Input that never comes; the wait is the guest's and ends with the deadline.
TEST_F(Case, G02SilentStdinDoesNotOutlastTheDeadline) {
  const Pipe silent = MakePipe();
  RunRequest request = RequestFor("honest_echo");
  request.stdin_from = GuestStream::Descriptor(silent.reader.get());
  request.limits.deadline = kShortDeadline;
  request.worker.grace = kShortGrace;
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAfterGrace);
  EXPECT_LT(report.elapsed, seconds(20));
}

// A destination that never takes anything stops the guest by back-pressure, and the run at its
// deadline.
TEST_F(OneShot, DeafReadersDoNotOutlastTheDeadline) {
  Pipe pipe = MakePipe();
  RunRequest request = RequestFor("floods_guest_streams");
  request.stdout_to = GuestStream::Descriptor(pipe.writer.get());
  request.limits.deadline = kShortDeadline;
  request.worker.grace = kShortGrace;
  const RunReport report = Run(request);
  ExpectOutcome(report, "forced-containment-deadline-exceeded", kForcedAfterGrace);
  EXPECT_LT(report.elapsed, seconds(20));
  pipe.writer.Reset();
  EXPECT_EQ(ReadAll(pipe.reader.borrow()).size(), report.stdout_bytes);
  EXPECT_GT(report.stdout_undelivered_bytes, 0U);
}

// The worker is long gone when the reader begins to read: all of it arrives, within the deadline.
TEST_F(OneShot, SlowReadersGetEverything) {
  const std::string content = Pattern(1U << 20);
  const UniqueFd file = MemoryFile(content);
  Pipe pipe = MakePipe();
  RunRequest request = Echo(file);
  request.stdout_to = GuestStream::Descriptor(pipe.writer.get());
  RunHandle run = StartRun(runtime(), EmptyModule(), request).value();
  EXPECT_FALSE(BecomesReadable(run.poll_fd(),
                               milliseconds(500)));  // more than the pipe holds: it cannot end yet
  std::string received;
  std::thread reader([&] { received = ReadAll(pipe.reader.borrow()); });
  const RunReport report = run.Wait();
  CheckAfterRun(report);
  pipe.writer.Reset();
  reader.join();
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_TRUE(received == content);
}

TEST_F(OneShot, AReaderThatLeavesStopsTheRun) {
  Pipe pipe = MakePipe();
  std::thread reader([&] {
    char first = 0;
    EXPECT_EQ(read(pipe.reader.get(), &first, 1), 1);
    pipe.reader.Reset();
  });
  RunRequest request = RequestFor("floods_guest_streams");
  request.stdout_to = GuestStream::Descriptor(pipe.writer.get());
  request.worker.grace = kShortGrace;
  const RunReport report = Run(request);
  reader.join();
  ExpectOutcome(report, "stdout-closed");
  EXPECT_GT(report.stdout_bytes, 0U);
  EXPECT_LT(report.elapsed, seconds(20));
}

TEST_F(OneShot, AReaderThatWasNeverThereStopsTheRun) {
  Pipe pipe = MakePipe();
  pipe.reader.Reset();
  RunRequest request = RequestFor("floods_guest_streams");
  request.stdout_to = GuestStream::Descriptor(pipe.writer.get());
  request.worker.grace = kShortGrace;
  ExpectOutcome(Run(request), "stdout-closed");
}

TEST_F(OneShot, StdoutLimitIsExact) {
  for (const bool capture : {false, true}) {
    Pipe pipe = MakePipe();
    std::string received;
    std::thread reader([&] { received = ReadAll(pipe.reader.borrow()); });
    RunRequest request = RequestFor("floods_guest_streams");
    request.stdout_to =
        capture ? GuestStream::Capture(1U << 20) : GuestStream::Descriptor(pipe.writer.get());
    request.limits.stdout_bytes_max = 100'000;
    request.worker.grace = kShortGrace;
    const RunReport report = Run(request);
    pipe.writer.Reset();
    reader.join();
    ExpectOutcome(report, "stdout-limit");
    EXPECT_EQ(report.stdout_bytes, 100'000U);
    EXPECT_EQ((capture ? report.stdout_captured : received).size(), 100'000U);
  }
}

TEST_F(OneShot, StdoutOfExactlyTheLimitIsFine) {
  const std::string content = Pattern(100'000);
  const UniqueFd file = MemoryFile(content);
  RunRequest request = Echo(file);
  request.stdout_to = GuestStream::Capture(1U << 20);
  request.limits.stdout_bytes_max = content.size();
  const RunReport report = Run(request);
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.stdout_captured, content);
}

TEST_F(OneShot, GuestStderrIsItsOwnStream) {
  RunRequest request = RequestFor("floods_guest_streams");
  request.stderr_to = GuestStream::Capture(5000);
  request.limits.deadline = kShortDeadline;
  request.worker.grace = kShortGrace;
  const RunReport report = Run(request);
  EXPECT_EQ(report.stop, StopCause::kDeadlineExceeded);
  EXPECT_EQ(report.stderr_captured.size(), 5000U);
  EXPECT_GE(report.stderr_bytes, 5000U);
  EXPECT_EQ(report.stdout_bytes, 0U);
  EXPECT_EQ(report.worker_stderr_tail, "");
}

TEST_F(OneShot, FullDevicesAreNotACrash) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  const UniqueFd file = MemoryFile(Pattern(1U << 20));
  RunRequest request = Echo(file);
  request.stdout_to = GuestStream::Descriptor(full.get());
  request.worker.grace = kShortGrace;
  const RunReport report = Run(request);
  EXPECT_FALSE(report.outcome.completed()) << "the output went nowhere";
  EXPECT_EQ(report.stdout_bytes, 0U);
}

}  // namespace
}  // namespace bulkhead::test
