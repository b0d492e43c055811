#include <cstring>
#include <thread>

#include "wasi/test_guest.h"

namespace bulkhead::wasi {
namespace {

std::string Drain(const UniqueFd& fd) {
  std::string all;
  std::array<char, 65536> block;
  while (true) {
    const ssize_t got = read(fd.get(), block.data(), block.size());
    if (got <= 0) {
      return all;
    }
    all.append(block.data(), static_cast<std::size_t>(got));
  }
}

TEST(WasiStdio, ClosedStreamsReadEndOfFileAndDiscard) {
  Guest guest(WasiConfig{});
  EXPECT_EQ(guest.Read(0, 10), std::pair(Errno::kSuccess, std::string()));
  EXPECT_EQ(guest.Write(1, "hello"), std::pair(Errno::kSuccess, 5U));
  EXPECT_EQ(guest.Write(2, "x"), std::pair(Errno::kSuccess, 1U));
  EXPECT_EQ(guest.Facts().stdout_bytes, 5U);
  EXPECT_EQ(guest.Facts().stderr_bytes, 1U);
}

TEST(WasiStdio, DescribeThemselvesAsStreamsThatAreNoTerminals) {
  Guest guest(WasiConfig{});
  for (std::uint32_t fd = 0; fd < 3; ++fd) {
    EXPECT_EQ(guest.StatDescriptor(fd).filetype, FileType::kUnknown);
    EXPECT_EQ(guest.Stat(fd).first, Errno::kSuccess);
    EXPECT_EQ(guest.Seek(fd, 0, kWhenceCur).first, Errno::kSpipe);
    EXPECT_EQ(guest.Call("fd_tell", fd, guest.Allocate(8)), Errno::kSpipe);
    EXPECT_EQ(guest.Call("fd_sync", fd), Errno::kInval);
    EXPECT_EQ(guest.Call("fd_prestat_get", fd, guest.Allocate(8)), Errno::kBadf);
    EXPECT_EQ(guest.OnPath("path_unlink_file", fd, "x"), Errno::kNotdir);
    EXPECT_EQ(guest.Call("fd_allocate", fd, 0, 1), Errno::kSpipe);
    EXPECT_EQ(guest.Call("fd_filestat_set_size", fd, 0), Errno::kNotcapable);
  }
  EXPECT_EQ(guest.Read(1, 1).first, Errno::kNotcapable);
  EXPECT_EQ(guest.Write(0, "x").first, Errno::kNotcapable);
}

TEST(WasiStdio, ReadsAndWritesWithScatterLists) {
  Pipe in = Pipe::Make();
  Pipe out = Pipe::Make();
  ASSERT_EQ(write(in.writer.get(), "abcdef", 6), 6);
  WasiConfig config;
  config.stdin_fd = std::move(in.reader);
  config.stdout_fd = std::move(out.writer);
  Guest guest(std::move(config));
  const std::uint32_t a = guest.Allocate(2);
  const std::uint32_t b = guest.Allocate(2);
  const std::uint32_t list =
      guest.StoreValue(std::array{GuestIovec{a, 2}, GuestIovec{a, 0}, GuestIovec{b, 2}});
  const std::uint32_t count = guest.Allocate(4);
  ASSERT_EQ(guest.Call("fd_read", 0, list, 3, count), Errno::kSuccess);
  EXPECT_EQ(guest.Load<std::uint32_t>(count), 4U);
  EXPECT_EQ(guest.Text(b, 2), "cd");
  ASSERT_EQ(guest.Call("fd_write", 1, list, 3, count), Errno::kSuccess);
  EXPECT_EQ(guest.Load<std::uint32_t>(count), 4U);
  ASSERT_EQ(guest.Call("fd_close", 1), Errno::kSuccess);
  EXPECT_EQ(guest.Facts().stdout_bytes, 4U);
  EXPECT_EQ(guest.Write(1, "x").first, Errno::kBadf);
}

TEST(WasiStdio, BadListsAreRefusedBeforeAnythingMoves) {
  Pipe in = Pipe::Make();
  ASSERT_EQ(write(in.writer.get(), "abc", 3), 3);
  WasiConfig config;
  config.stdin_fd = std::move(in.reader);
  Guest guest(std::move(config));
  const std::uint32_t buffer = guest.Allocate(8);
  const std::uint32_t count = guest.Allocate(4);
  const std::uint32_t good = guest.OneBuffer(buffer, 8);
  const auto top = static_cast<std::uint32_t>(Guest::kMemoryBytes);
  EXPECT_EQ(guest.Call("fd_read", 0, good, 1, top - 3), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_read", 0, top - 7, 1, count), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_read", 0, good, 1025, count), Errno::kInval);
  const std::uint32_t half_bad =
      guest.StoreValue(std::array{GuestIovec{buffer, 8}, GuestIovec{top - 4, 5}});
  EXPECT_EQ(guest.Call("fd_read", 0, half_bad, 2, count), Errno::kFault);
  EXPECT_EQ(guest.Load<std::uint64_t>(buffer), 0U);
  EXPECT_EQ(guest.Call("fd_read", 9, good, 1, count), Errno::kBadf);
  EXPECT_EQ(guest.Read(0, 8).second, "abc");
}

TEST(WasiStdio, ASumBeyondThirtyTwoBitsIsRefused) {
  Guest guest(WasiConfig{});
  const std::vector<GuestIovec> parts(1024, GuestIovec{0, Guest::kMemoryBytes});
  const std::uint32_t list = guest.Allocate(parts.size() * sizeof(GuestIovec));
  std::memcpy(guest.memory().base + list, parts.data(), parts.size() * sizeof(GuestIovec));
  EXPECT_EQ(guest.Call("fd_write", 1, list, 1024, guest.Allocate(4)), Errno::kInval);
}

TEST(WasiStdio, ALargeWriteArrivesWholeThroughAFullPipe) {
  Pipe out = Pipe::Make();
  WasiConfig config;
  config.stdout_fd = std::move(out.writer);
  Guest guest(std::move(config));
  std::string text(1 << 20, 'a');
  text.back() = 'z';
  std::string received;
  {
    const std::jthread reader([&] { received = Drain(out.reader); });
    EXPECT_EQ(guest.Write(1, text), std::pair(Errno::kSuccess, 1U << 20));
    ASSERT_EQ(guest.Call("fd_close", 1), Errno::kSuccess);
    // The stream itself lives as long as the report may want its facts, so the pipe is closed with
    // the guest.
    const Guest ended = std::move(guest);
  }
  EXPECT_EQ(received, text);
}

TEST(WasiStdio, AStopWakesABlockedWriteAndABlockedRead) {
  Pipe in = Pipe::Make();
  Pipe out = Pipe::Make();
  WasiConfig config;
  config.stdin_fd = std::move(in.reader);
  config.stdout_fd = std::move(out.writer);
  Guest guest(std::move(config));
  const std::uint32_t big = guest.OneBuffer(guest.Allocate(1 << 20), 1 << 20);
  const std::uint32_t small = guest.OneBuffer(guest.Allocate(1), 1);
  const std::uint32_t count = guest.Allocate(4);
  const std::uint32_t count2 = guest.Allocate(4);
  {
    const std::jthread writer(
        [&] { EXPECT_EQ(guest.CallAny("fd_write", 1, big, 1, count).first, Control::kStopped); });
    const std::jthread second_writer([&] {  // waits for its turn
      EXPECT_EQ(guest.CallAny("fd_write", 1, big, 1, count).first, Control::kStopped);
    });
    const std::jthread reader(
        [&] { EXPECT_EQ(guest.CallAny("fd_read", 0, small, 1, count2).first, Control::kStopped); });
    guest.stop().Signal();
  }
  EXPECT_GT(guest.Facts().stdout_bytes, 0U);
}

TEST(WasiStdio, RemembersThatTheReaderLeft) {
  Pipe out = Pipe::Make();
  WasiConfig config;
  config.stdout_fd = std::move(out.writer);
  Guest guest(std::move(config));
  EXPECT_FALSE(guest.Facts().stdout_reader_gone);
  out.reader.Reset();
  EXPECT_EQ(guest.Write(1, "x").first, Errno::kPipe);
  EXPECT_TRUE(guest.Facts().stdout_reader_gone);
  EXPECT_FALSE(guest.Facts().stderr_reader_gone);
  EXPECT_EQ(guest.Facts().stdout_bytes, 0U);
}

TEST(WasiStdio, TheLimitIsDeliveredExactlyAndEndsTheGuest) {
  Pipe out = Pipe::Make();
  WasiConfig config;
  config.stdout_fd = std::move(out.writer);
  config.stdout_bytes_max = 6;
  Guest guest(std::move(config));
  EXPECT_EQ(guest.Write(1, "abcd"), std::pair(Errno::kSuccess, 4U));
  EXPECT_FALSE(guest.Facts().stdout_limit_hit);
  const std::uint32_t list = guest.OneBuffer(guest.Store("efgh"), 4);
  EXPECT_EQ(guest.CallAny("fd_write", 1, list, 1, guest.Allocate(4)).first, Control::kStdoutLimit);
  EXPECT_EQ(guest.CallAny("fd_write", 1, list, 1, guest.Allocate(4)).first, Control::kStdoutLimit);
  EXPECT_TRUE(guest.Facts().stdout_limit_hit);
  EXPECT_EQ(guest.Facts().stdout_bytes, 6U);
  std::array<char, 16> got;
  EXPECT_EQ(read(out.reader.get(), got.data(), got.size()), 6);
}

TEST(WasiStdio, ExactlyTheLimitIsFine) {
  WasiConfig config;
  config.stdout_bytes_max = 4;
  Guest guest(std::move(config));
  EXPECT_EQ(guest.Write(1, "abcd"), std::pair(Errno::kSuccess, 4U));
  EXPECT_EQ(guest.Write(1, ""), std::pair(Errno::kSuccess, 0U));
  EXPECT_FALSE(guest.Facts().stdout_limit_hit);
  EXPECT_EQ(guest.Write(2, "unlimited").first, Errno::kSuccess);
}

TEST(WasiStdio, NonblockingStreamsSayAgain) {
  Pipe in = Pipe::Make();
  Pipe out = Pipe::Make();
  const int in_flags = fcntl(in.reader.get(), F_GETFL);
  const UniqueFd same_description(fcntl(in.reader.get(), F_DUPFD_CLOEXEC, 3));
  WasiConfig config;
  config.stdin_fd = std::move(in.reader);
  config.stdout_fd = std::move(out.writer);
  Guest guest(std::move(config));
  ASSERT_EQ(guest.Call("fd_fdstat_set_flags", 0, fdflags::kNonblock), Errno::kSuccess);
  ASSERT_EQ(guest.Call("fd_fdstat_set_flags", 1, fdflags::kNonblock), Errno::kSuccess);
  EXPECT_EQ(guest.StatDescriptor(0).flags, fdflags::kNonblock);
  EXPECT_EQ(fcntl(same_description.get(), F_GETFL), in_flags) << "stdin may be shared";
  EXPECT_EQ(guest.Read(0, 1).first, Errno::kAgain);
  const auto [error, bytes] = guest.Write(1, std::string(1 << 20, 'x'));
  EXPECT_EQ(error, Errno::kSuccess);
  EXPECT_LT(bytes, 1U << 20);
  EXPECT_EQ(guest.Write(1, "x").first, Errno::kAgain);
  EXPECT_EQ(guest.Call("fd_fdstat_set_flags", 1, fdflags::kSync), Errno::kNotsup);
  EXPECT_EQ(guest.Call("fd_fdstat_set_flags", 1, 32), Errno::kInval);
}

TEST(WasiStdio, WritesOfSeveralThreadsStayInOnePiece) {
  Pipe out = Pipe::Make();
  WasiConfig config;
  config.stdout_fd = std::move(out.writer);
  Guest guest(std::move(config));
  constexpr std::size_t kPieceBytes = 100'000;  // more than a pipe holds
  std::string received;
  const std::uint32_t count = guest.Allocate(4);
  const std::uint32_t count2 = guest.Allocate(4);
  const std::uint32_t a = guest.OneBuffer(guest.Store(std::string(kPieceBytes, 'a')), kPieceBytes);
  const std::uint32_t b = guest.OneBuffer(guest.Store(std::string(kPieceBytes, 'b')), kPieceBytes);
  {
    const std::jthread first(
        [&] { EXPECT_EQ(guest.Call("fd_write", 1, a, 1, count), Errno::kSuccess); });
    const std::jthread second(
        [&] { EXPECT_EQ(guest.Call("fd_write", 1, b, 1, count2), Errno::kSuccess); });
    std::array<char, 65536> block;
    while (received.size() < 2 * kPieceBytes) {
      const ssize_t got = read(out.reader.get(), block.data(), block.size());
      ASSERT_GT(got, 0);
      received.append(block.data(), static_cast<std::size_t>(got));
    }
  }
  received.erase(std::unique(received.begin(), received.end()), received.end());
  EXPECT_EQ(received.size(), 2U);
}

}  // namespace
}  // namespace bulkhead::wasi
