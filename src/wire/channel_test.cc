#include "wire/channel.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/wait_set.h"
#include "support/wire_samples.h"

namespace bulkhead::wire {
namespace {

constexpr MessageId kId{1, 7};

std::string Encoded(const FromWorker& message) {
  return EncodeFrame(kId, message).value();
}

std::string Encoded(const ToWorker& message) {
  return EncodeFrame(kId, message).value();
}

// An Execute of about `bytes`.
std::string BigFrame(std::size_t bytes) {
  Execute m;
  m.remaining_ms = 1;
  for (std::size_t left = bytes; left > 0; left -= std::min<std::size_t>(left, kArgumentBytesMax)) {
    m.arguments.emplace_back(std::min<std::size_t>(left, kArgumentBytesMax), 'x');
  }
  return Encoded(ToWorker(m));
}

int OpenDescriptors() {
  int count = 0;
  DIR* dir = opendir("/proc/self/fd");
  while (readdir(dir) != nullptr) {
    ++count;
  }
  closedir(dir);
  return count;
}

UniqueFd MakePipeReader(UniqueFd* writer) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  writer->Reset(ends[1]);
  return UniqueFd(ends[0]);
}

bool WaitFor(BorrowedFd fd, short events) {
  const MonotonicClock clock;
  WaitSet set;
  set.Add(fd, events, 0);
  const Result<bool> ready =
      set.Wait(clock, Deadline::After(clock.Now(), std::chrono::seconds(30)));
  return ready && *ready;
}

// Attaches `count` copies of one descriptor to `bytes`, past what Channel itself would ever send.
void SendWithDescriptors(BorrowedFd socket, std::string_view bytes, BorrowedFd fd,
                         std::size_t count) {
  std::string payload(bytes);
  iovec piece{payload.data(), payload.size()};
  std::vector<char> control(CMSG_SPACE(sizeof(int) * count));
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * count);
  const std::vector<int> fds(count, fd.get());
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * count);
  ASSERT_EQ(sendmsg(socket.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(payload.size()));
}

class ChannelTest : public testing::Test {
 protected:
  // Bytes as a worker that does not use Channel would write them.
  void WriteAsWorker(std::string_view bytes) {
    ASSERT_EQ(send(worker_.fd().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  void CloseWorkerSide() { shutdown(worker_.fd().get(), SHUT_WR); }

  ChannelPair pair_ = *MakeChannelPair();
  Channel parent_{std::move(pair_.parent), Direction::kFromWorker};
  Channel worker_{std::move(pair_.worker), Direction::kToWorker};
  Frame frame_;
};

TEST_F(ChannelTest, SocketsAreCloseOnExecAndNonBlocking) {
  for (const int fd : {parent_.fd().get(), worker_.fd().get()}) {
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  }
}

TEST_F(ChannelTest, CarriesEveryMessageBothWays) {
  for (const ToWorker& message : test::ToWorkerSamples()) {
    const std::string sent = Encoded(message);
    ASSERT_TRUE(parent_.Send(sent, {}).has_value());
    ASSERT_EQ(*worker_.Receive(&frame_), Channel::Read::kFrame);
    EXPECT_EQ(frame_.body, test::BodyOf(sent));
    EXPECT_EQ(frame_.header.request_id, kId.request_id);
  }
  for (const FromWorker& message : test::FromWorkerSamples()) {
    const std::string sent = Encoded(message);
    ASSERT_TRUE(worker_.Send(sent, {}).has_value());
    ASSERT_EQ(*parent_.Receive(&frame_), Channel::Read::kFrame);
    EXPECT_EQ(frame_.body, test::BodyOf(sent));
  }
  EXPECT_FALSE(parent_.pending());
  EXPECT_EQ(*parent_.Receive(&frame_), Channel::Read::kWouldBlock);
}

TEST_F(ChannelTest, FramesWrittenTogetherComeOutOneByOne) {
  WriteAsWorker(Encoded(test::SampleHelloAck()) + Encoded(Ready{1}) + Encoded(Started{2}));
  CloseWorkerSide();
  ASSERT_EQ(*parent_.Receive(&frame_), Channel::Read::kFrame);
  EXPECT_EQ(frame_.header.kind, Kind::kHelloAck);
  ASSERT_EQ(*parent_.Receive(&frame_), Channel::Read::kFrame);
  EXPECT_EQ(frame_.header.kind, Kind::kReady);
  ASSERT_EQ(*parent_.Receive(&frame_), Channel::Read::kFrame);
  EXPECT_EQ(frame_.header.kind, Kind::kStarted);
  EXPECT_EQ(*parent_.Receive(&frame_), Channel::Read::kEnd);
  EXPECT_EQ(*parent_.Receive(&frame_), Channel::Read::kEnd);
}

TEST_F(ChannelTest, FramesArriveByteByByte) {
  const std::string sent = Encoded(test::SampleTerminal());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_EQ(*parent_.Receive(&frame_), Channel::Read::kWouldBlock) << i;
    WriteAsWorker(sent.substr(i, 1));
  }
  ASSERT_EQ(*parent_.Receive(&frame_), Channel::Read::kFrame);
  EXPECT_EQ(frame_.body, test::BodyOf(sent));
}

TEST_F(ChannelTest, EmptyBodiesAreFrames) {
  ASSERT_TRUE(parent_.Send(Encoded(ToWorker(Cancel())), {}).has_value());
  ASSERT_EQ(*worker_.Receive(&frame_), Channel::Read::kFrame);
  EXPECT_EQ(frame_.header.kind, Kind::kCancel);
  EXPECT_EQ(frame_.body, "");
}

// Case.G20 at this level: the end of the stream is told apart from the end in the middle of a
// frame.
TEST_F(ChannelTest, EveryIncompleteFrameAtTheEndIsTruncated) {
  const std::string sent = Encoded(FromWorker(Ready{1}));
  for (std::size_t size = 1; size < sent.size(); ++size) {
    ChannelPair pair = *MakeChannelPair();
    Channel parent(std::move(pair.parent), Direction::kFromWorker);
    ASSERT_EQ(send(pair.worker.get(), sent.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    pair.worker.Reset();
    const Result<Channel::Read> read = parent.Receive(&frame_);
    ASSERT_FALSE(read.has_value()) << size;
    EXPECT_EQ(read.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(read.error().reason, "truncated");
  }
}

// A worker that dies after any byte of 64 KiB: all its whole frames, then one end.
TEST_F(ChannelTest, AStreamMayEndAfterAnyByte) {
  const std::string frame = Encoded(FromWorker(Trace{std::string(2000, 't')}));
  std::string sent;
  while (sent.size() < 64U << 10) {
    sent += frame;
  }
  for (std::size_t size = 0; size <= sent.size(); ++size) {
    ChannelPair pair = *MakeChannelPair();
    Channel parent(std::move(pair.parent), Direction::kFromWorker);
    ASSERT_EQ(send(pair.worker.get(), sent.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    pair.worker.Reset();
    std::size_t frames = 0;
    Result<Channel::Read> read = Channel::Read::kFrame;
    while ((read = parent.Receive(&frame_)) && *read == Channel::Read::kFrame) {
      ++frames;
    }
    ASSERT_EQ(frames, size / frame.size());
    if (size % frame.size() == 0) {
      ASSERT_TRUE(read.has_value() && *read == Channel::Read::kEnd) << size;
    } else {
      ASSERT_FALSE(read.has_value()) << size;
      ASSERT_EQ(read.error().reason, "truncated");
    }
  }
}

TEST_F(ChannelTest, GarbageIsRefusedAfterTheHeaderAlone) {
  WriteAsWorker(std::string(kHeaderBytes, 'x'));
  const Result<Channel::Read> read = parent_.Receive(&frame_);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().reason, "bad-magic");
}

TEST_F(ChannelTest, WrongWayFramesAreRefused) {
  WriteAsWorker(Encoded(ToWorker(test::SampleExecute())));
  EXPECT_EQ(parent_.Receive(&frame_).error().reason, "unknown-kind");
}

// At most the frame at hand is read: what a flooding worker writes stays in the kernel and stops it
// there.
TEST_F(ChannelTest, FloodsStayInTheSocket) {
  const std::string frame = Encoded(FromWorker(Trace{std::string(1000, 't')}));
  std::size_t written = 0;
  for (;;) {
    const ssize_t sent =
        send(worker_.fd().get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      break;
    }
    written += static_cast<std::size_t>(sent);
  }
  ASSERT_GT(written, 4 * frame.size());
  ASSERT_EQ(*parent_.Receive(&frame_), Channel::Read::kFrame);
  int queued = 0;
  ASSERT_EQ(ioctl(parent_.fd().get(), FIONREAD, &queued), 0);
  EXPECT_EQ(static_cast<std::size_t>(queued), written - frame.size());
}

TEST_F(ChannelTest, BigFramesWaitForAFullSocket) {
  const std::string big = BigFrame(3U << 20);
  ASSERT_TRUE(parent_.Send(big, {}).has_value());
  ASSERT_TRUE(parent_.pending());
  EXPECT_TRUE(parent_.Flush().has_value());  // no room: not an error
  EXPECT_TRUE(parent_.pending());
  for (;;) {
    const Channel::Read read = *worker_.Receive(&frame_);
    if (read == Channel::Read::kFrame) {
      break;
    }
    ASSERT_EQ(read, Channel::Read::kWouldBlock);
    ASSERT_TRUE(parent_.Flush().has_value());
  }
  EXPECT_EQ(frame_.body, test::BodyOf(big));
  EXPECT_FALSE(parent_.pending());
}

// G32 at this level: both sides write more than the sockets hold before either reads.
TEST_F(ChannelTest, BothSidesMayWriteAtOnce) {
  const std::string down = BigFrame(2U << 20);
  const std::string up = Encoded(FromWorker(Trace{std::string(kTraceBytesMax, 't')}));
  constexpr int kUpFrames = 20;
  std::thread worker([&] {
    for (int i = 0; i < kUpFrames; ++i) {
      ASSERT_TRUE(worker_.Send(up, {}).has_value());
    }
    Frame received;
    bool have_frame = false;
    while (!have_frame || worker_.pending()) {
      ASSERT_TRUE(
          WaitFor(worker_.fd(), static_cast<short>(POLLIN | (worker_.pending() ? POLLOUT : 0))));
      ASSERT_TRUE(worker_.Flush().has_value());
      have_frame = have_frame || *worker_.Receive(&received) == Channel::Read::kFrame;
    }
    EXPECT_EQ(received.body.size(), down.size() - kHeaderBytes);
  });
  ASSERT_TRUE(parent_.Send(down, {}).has_value());
  int frames = 0;
  while (frames < kUpFrames || parent_.pending()) {
    ASSERT_TRUE(
        WaitFor(parent_.fd(), static_cast<short>(POLLIN | (parent_.pending() ? POLLOUT : 0))));
    ASSERT_TRUE(parent_.Flush().has_value());
    while (frames < kUpFrames && *parent_.Receive(&frame_) == Channel::Read::kFrame) {
      EXPECT_EQ(frame_.body.size(), up.size() - kHeaderBytes);
      ++frames;
    }
  }
  worker.join();
}

TEST_F(ChannelTest, WritingToAPeerThatIsGoneIsAnErrorNotASignal) {
  ChannelPair pair = *MakeChannelPair();
  Channel parent(std::move(pair.parent), Direction::kFromWorker);
  pair.worker.Reset();
  const Status sent = parent.Send(Encoded(ToWorker(Cancel())), {});
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().code, ErrorCode::kIo);
  EXPECT_TRUE(sent.error().sys_errno == EPIPE || sent.error().sys_errno == ECONNRESET);
  EXPECT_EQ(*parent.Receive(&frame_), Channel::Read::kEnd);
}

// Rule 5 of section 2.7: what the worker delivered before it died is not lost, also when it left
// bytes of ours unread.
TEST_F(ChannelTest, DeliveredFramesSurviveAResetByTheDyingPeer) {
  ChannelPair pair = *MakeChannelPair();
  Channel parent(std::move(pair.parent), Direction::kFromWorker);
  ASSERT_TRUE(parent.Send(Encoded(ToWorker(Cancel())), {}).has_value());
  const std::string terminal = Encoded(test::CompletedTerminal());
  ASSERT_EQ(send(pair.worker.get(), terminal.data(), terminal.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(terminal.size()));
  pair.worker.Reset();  // with the Cancel unread: the kernel resets the connection
  const Result<Channel::Read> read = parent.Receive(&frame_);
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(*read, Channel::Read::kFrame);
  EXPECT_EQ(frame_.header.kind, Kind::kTerminal);
  EXPECT_EQ(*parent.Receive(&frame_), Channel::Read::kEnd);
}

TEST_F(ChannelTest, DescriptorsTravelInOrderWithTheirFrame) {
  UniqueFd first_writer;
  const UniqueFd first = MakePipeReader(&first_writer);
  UniqueFd second_writer;
  const UniqueFd second = MakePipeReader(&second_writer);
  ASSERT_EQ(write(first_writer.get(), "1", 1), 1);
  ASSERT_EQ(write(second_writer.get(), "2", 1), 1);
  ASSERT_TRUE(
      parent_.Send(Encoded(ToWorker(test::SampleHello())), {first.borrow(), second.borrow()})
          .has_value());
  ASSERT_EQ(*worker_.Receive(&frame_), Channel::Read::kFrame);
  ASSERT_EQ(worker_.descriptor_count(), 2U);
  for (const char expected : {'1', '2'}) {
    const std::vector<UniqueFd> taken = worker_.TakeDescriptors(1);
    ASSERT_EQ(taken.size(), 1U);
    char got = 0;
    EXPECT_EQ(read(taken[0].get(), &got, 1), 1);
    EXPECT_EQ(got, expected);
    EXPECT_NE(fcntl(taken[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_TRUE(worker_.TakeDescriptors(1).empty());
}

TEST_F(ChannelTest, TheFullNumberOfDescriptorsFits) {
  UniqueFd writer;
  const UniqueFd reader = MakePipeReader(&writer);
  const std::vector<BorrowedFd> many(kDescriptorsPerFrameMax, reader.borrow());
  ASSERT_TRUE(parent_.Send(Encoded(ToWorker(test::SampleHello())), many).has_value());
  ASSERT_EQ(*worker_.Receive(&frame_), Channel::Read::kFrame);
  EXPECT_EQ(worker_.TakeDescriptors(100).size(), kDescriptorsPerFrameMax);
}

// Behind a full socket the descriptors wait for their frame's first byte.
TEST_F(ChannelTest, DescriptorsOfQueuedFramesArriveOnce) {
  UniqueFd writer;
  const UniqueFd reader = MakePipeReader(&writer);
  ASSERT_TRUE(parent_.Send(BigFrame(3U << 20), {}).has_value());
  ASSERT_TRUE(parent_.Send(BigFrame(1U << 20), {reader.borrow()}).has_value());
  ASSERT_TRUE(parent_.pending());
  int frames = 0;
  while (frames < 2) {
    ASSERT_TRUE(parent_.Flush().has_value());
    frames += *worker_.Receive(&frame_) == Channel::Read::kFrame ? 1 : 0;
  }
  EXPECT_EQ(worker_.descriptor_count(), 1U);
}

TEST_F(ChannelTest, TheParentKeepsNothingAWorkerAttaches) {
  UniqueFd writer;
  const UniqueFd reader = MakePipeReader(&writer);
  const int before = OpenDescriptors();
  for (int i = 0; i < 20; ++i) {
    SendWithDescriptors(worker_.fd(), Encoded(FromWorker(Ready{1})), reader.borrow(), 100);
    const Result<Channel::Read> read = parent_.Receive(&frame_);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    ASSERT_EQ(*read, Channel::Read::kFrame);
  }
  EXPECT_EQ(parent_.descriptor_count(), 0U);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(ChannelTest, TooManyDescriptorsAreRefusedAndClosed) {
  UniqueFd writer;
  const UniqueFd reader = MakePipeReader(&writer);
  const int before = OpenDescriptors();
  {
    ChannelPair pair = *MakeChannelPair();
    Channel worker(std::move(pair.worker), Direction::kToWorker);
    SendWithDescriptors(pair.parent.borrow(), Encoded(ToWorker(Cancel())), reader.borrow(), 200);
    const Result<Channel::Read> read = worker.Receive(&frame_);
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().code, ErrorCode::kProtocol);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(ChannelTest, UntakenDescriptorsAreClosedWithTheChannel) {
  UniqueFd writer;
  UniqueFd reader = MakePipeReader(&writer);
  const int before = OpenDescriptors();
  {
    ChannelPair pair = *MakeChannelPair();
    Channel parent(std::move(pair.parent), Direction::kFromWorker);
    Channel worker(std::move(pair.worker), Direction::kToWorker);
    ASSERT_TRUE(parent.Send(Encoded(ToWorker(Cancel())), {reader.borrow()}).has_value());
    ASSERT_EQ(*worker.Receive(&frame_), Channel::Read::kFrame);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace bulkhead::wire
