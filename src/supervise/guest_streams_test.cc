#include "supervise/guest_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_error.h"

namespace bulkhead::supervise {
namespace {

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    read.Reset(fds[0]);
    write.Reset(fds[1]);
  }

  std::string ReadAll() {
    std::string all;
    char buffer[65536];
    for (ssize_t got = ::read(read.get(), buffer, sizeof buffer); got > 0;
         got = ::read(read.get(), buffer, sizeof buffer)) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }

  UniqueFd read;
  UniqueFd write;
};

void Write(const UniqueFd& fd, std::string_view text) {
  ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// One turn of the exchange's loop: waits at most 10 s for something to do.
bool Turn(GuestOutput& output, std::chrono::milliseconds bound = std::chrono::seconds(10)) {
  const MonotonicClock clock;
  WaitSet waits;
  output.AddTo(waits, 0);
  const bool ready = *waits.Wait(clock, Deadline::After(clock.Now(), bound));
  output.Pump(waits, 0);
  return ready;
}

void RunUntilDrained(GuestOutput& output) {
  while (!output.drained()) {
    ASSERT_TRUE(Turn(output));
  }
}

class GuestOutputTest : public testing::Test {
 protected:
  GuestOutput Make(const GuestStream& stream, std::uint64_t bytes_max = 0, bool neutralise = true) {
    return std::move(*GuestOutput::Create({stream, neutralise, bytes_max}, &worker_end_));
  }

  const ScopedSigpipeBlock no_sigpipe_;
  UniqueFd worker_end_;
};

TEST_F(GuestOutputTest, NoneNeedsNoPipe) {
  const GuestOutput output = Make(GuestStream::None());
  EXPECT_FALSE(worker_end_.valid());
  EXPECT_TRUE(output.drained());
}

TEST_F(GuestOutputTest, CaptureKeepsTheFirstBytesAndCountsAll) {
  GuestOutput output = Make(GuestStream::Capture(4));
  Write(worker_end_, "abcdefgh");
  worker_end_.Reset();
  RunUntilDrained(output);
  EXPECT_EQ(output.TakeCapture(), "abcd");
  EXPECT_EQ(output.bytes(), 8U);
  EXPECT_EQ(output.undelivered_bytes(), 0U);
}

TEST_F(GuestOutputTest, PipeToPipeKeepsEveryByteInOrder) {
  Pipe destination;
  fcntl(destination.write.get(), F_SETPIPE_SZ, 4096);
  GuestOutput output = Make(GuestStream::Descriptor(destination.write.get()));
  std::string sent;
  for (int i = 0; i < 20000; ++i) {
    sent += std::to_string(i) + ",";
  }
  Write(worker_end_, sent);
  worker_end_.Reset();
  std::string received;
  while (!output.drained()) {
    Turn(output, std::chrono::milliseconds(0));
    received += destination.ReadAll();
  }
  received += destination.ReadAll();
  EXPECT_EQ(received, sent);
  EXPECT_EQ(output.bytes(), sent.size());
}

TEST_F(GuestOutputTest, FullDestinationStopsReadingTheGuest) {
  Pipe destination;
  fcntl(destination.write.get(), F_SETPIPE_SZ, 4096);
  GuestOutput output = Make(GuestStream::Descriptor(destination.write.get()));
  Write(worker_end_, std::string(200000, 'x'));
  for (int i = 0; i < 100; ++i) {
    Turn(output, std::chrono::milliseconds(0));
  }
  EXPECT_LE(output.bytes(), 16U * 4096U);
  EXPECT_FALSE(Turn(output, std::chrono::milliseconds(0)));  // nothing is ready: no busy loop
}

TEST_F(GuestOutputTest, ReaderThatLeavesIsNoticedWithoutAWrite) {
  Pipe destination;
  GuestOutput output = Make(GuestStream::Descriptor(destination.write.get()));
  destination.read.Reset();
  ASSERT_TRUE(Turn(output));
  EXPECT_TRUE(output.destination_closed());
  EXPECT_EQ(output.destination_errno(), EPIPE);
}

TEST_F(GuestOutputTest, LimitCutsExactly) {
  Pipe destination;
  GuestOutput output = Make(GuestStream::Descriptor(destination.write.get()), 5);
  Write(worker_end_, "12345");
  ASSERT_TRUE(Turn(output));
  EXPECT_FALSE(output.limit_reached());
  Write(worker_end_, "6");
  ASSERT_TRUE(Turn(output));
  EXPECT_TRUE(output.limit_reached());
  EXPECT_EQ(destination.ReadAll(), "12345");
  EXPECT_EQ(output.bytes(), 5U);
  EXPECT_EQ(output.undelivered_bytes(), 1U);
}

TEST_F(GuestOutputTest, SocketAndFileDestinations) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const UniqueFd ours(sockets[0]);
  const UniqueFd theirs(sockets[1]);
  GuestOutput socket_output = Make(GuestStream::Descriptor(ours.get()));
  Write(worker_end_, "socket");
  worker_end_.Reset();
  RunUntilDrained(socket_output);
  char buffer[16];
  EXPECT_EQ(read(theirs.get(), buffer, sizeof buffer), 6);

  const UniqueFd file(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  GuestOutput file_output = Make(GuestStream::Descriptor(file.get()));
  Write(worker_end_, "file");
  worker_end_.Reset();
  RunUntilDrained(file_output);
  EXPECT_EQ(pread(file.get(), buffer, sizeof buffer, 0), 4);
}

TEST_F(GuestOutputTest, FullDeviceIsAClosedDestination) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  GuestOutput output = Make(GuestStream::Descriptor(full.get()));
  Write(worker_end_, "x");
  ASSERT_TRUE(Turn(output));
  EXPECT_TRUE(output.destination_closed());
  EXPECT_EQ(output.destination_errno(), ENOSPC);
}

TEST_F(GuestOutputTest, AbandonCountsWhatIsLeft) {
  Pipe destination;
  GuestOutput output = Make(GuestStream::Descriptor(destination.write.get()));
  Write(worker_end_, "1234");
  output.Abandon();
  EXPECT_EQ(output.undelivered_bytes(), 4U);
  EXPECT_TRUE(output.drained());
}

class TerminalOutputTest : public GuestOutputTest {
 protected:
  void SetUp() override {
    int controller = -1;
    int terminal = -1;
    if (openpty(&controller, &terminal, nullptr, nullptr, nullptr) != 0) {
      GTEST_SKIP() << "missing: pseudo-terminals: " << ErrnoText(errno);
    }
    controller_.Reset(controller);
    terminal_.Reset(terminal);
  }

  std::string Shown() {
    char buffer[4096];
    const ssize_t got = read(controller_.get(), buffer, sizeof buffer);
    return {buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

  UniqueFd controller_;
  UniqueFd terminal_;
};

TEST_F(TerminalOutputTest, ControlSequencesAreMadeVisible) {
  GuestOutput output = Make(GuestStream::Descriptor(terminal_.get()));
  Write(worker_end_, "a\x1b[31mb");
  ASSERT_TRUE(Turn(output));
  EXPECT_EQ(Shown(), "a\\x1b[31mb");
}

TEST_F(TerminalOutputTest, NeutralisingCanBeTurnedOff) {
  GuestOutput output = Make(GuestStream::Descriptor(terminal_.get()), 0, false);
  Write(worker_end_, "a\x1b[31mb");
  ASSERT_TRUE(Turn(output));
  EXPECT_EQ(Shown(), "a\x1b[31mb");
}

TEST_F(TerminalOutputTest, CharacterSplitBetweenWritesStaysWhole) {
  GuestOutput output = Make(GuestStream::Descriptor(terminal_.get()));
  Write(worker_end_, "\xE2\x82");
  ASSERT_TRUE(Turn(output));
  Write(worker_end_, "\xAC!");
  ASSERT_TRUE(Turn(output));
  EXPECT_EQ(Shown(), "\xE2\x82\xAC!");
}

TEST_F(TerminalOutputTest, TerminalInputIsRelayedNotHandedOver) {
  UniqueFd worker_stdin;
  GuestInput input =
      std::move(*GuestInput::Create(GuestStream::Descriptor(terminal_.get()), &worker_stdin));
  ASSERT_TRUE(worker_stdin.valid());
  EXPECT_NE(isatty(worker_stdin.get()), 1);
  Write(controller_, "hi\n");
  const MonotonicClock clock;
  WaitSet waits;
  input.AddTo(waits, 0);
  ASSERT_TRUE(*waits.Wait(clock, Deadline::After(clock.Now(), std::chrono::seconds(10))));
  input.Pump(waits, 0);
  char buffer[16];
  EXPECT_EQ(read(worker_stdin.get(), buffer, sizeof buffer), 3);
}

}  // namespace
}  // namespace bulkhead::supervise
