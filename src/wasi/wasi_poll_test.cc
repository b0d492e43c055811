#include <chrono>
#include <cstddef>
#include <thread>
#include <tuple>

#include "wasi/test_guest.h"

namespace bulkhead::wasi {
namespace {

constexpr std::uint64_t kHourNs = 3'600'000'000'000;

Subscription Sleep(std::uint64_t nanoseconds, std::uint32_t clock = 1, std::uint16_t flags = 0) {
  Subscription subscription;
  subscription.userdata = 77;
  subscription.clock.id = clock;
  subscription.clock.timeout_ns = nanoseconds;
  subscription.clock.flags = flags;
  return subscription;
}

Subscription OnDescriptor(EventType type, std::uint32_t fd) {
  Subscription subscription;
  subscription.userdata = 1000 + fd;
  subscription.type = type;
  subscription.clock.id = fd;
  return subscription;
}

struct Polled {
  Control control = Control::kContinue;
  Errno error = Errno::kSuccess;
  std::vector<Event> events;
};

Polled Poll(Guest& guest, const std::vector<Subscription>& subscriptions) {
  std::uint32_t in = guest.Allocate(0);
  for (const Subscription& subscription : subscriptions) {
    guest.StoreValue(subscription);
  }
  const std::uint32_t out = guest.Allocate(subscriptions.size() * sizeof(Event));
  const std::uint32_t count = guest.Allocate(4);
  Polled polled;
  std::tie(polled.control, polled.error) =
      guest.CallAny("poll_oneoff", in, out, subscriptions.size(), count);
  for (std::uint32_t i = 0; i < guest.Load<std::uint32_t>(count); ++i) {
    polled.events.push_back(guest.Load<Event>(out + i * static_cast<std::uint32_t>(sizeof(Event))));
  }
  return polled;
}

TEST(WasiPoll, RefusesNonsense) {
  Guest guest(WasiConfig{});
  EXPECT_EQ(Poll(guest, {}).error, Errno::kInval);
  const std::uint32_t count = guest.Allocate(4);
  const std::uint32_t in = guest.StoreValue(Sleep(0));
  const std::uint32_t unknown = guest.StoreValue(Sleep(0));
  ASSERT_TRUE(guest.memory().Put(unknown + offsetof(Subscription, type), std::uint8_t{3}));
  EXPECT_EQ(guest.Call("poll_oneoff", unknown, in, 1, count), Errno::kInval);
  EXPECT_EQ(guest.Call("poll_oneoff", in, in, 4097, count), Errno::kInval);
  EXPECT_EQ(guest.Call("poll_oneoff", 0xFFFFFFF0, in, 1, count), Errno::kFault);
  EXPECT_EQ(guest.Call("poll_oneoff", in, 0xFFFFFFF0, 1, count), Errno::kFault);
  EXPECT_EQ(guest.Call("poll_oneoff", in, in, 1, 0xFFFFFFFF), Errno::kFault);
}

TEST(WasiPoll, SleepsAndComesBack) {
  Guest guest(WasiConfig{});
  EXPECT_EQ(Poll(guest, {Sleep(0)}).events.size(), 1U);
  for (const std::uint32_t clock : {0U, 1U}) {
    constexpr std::uint64_t kNapNs = 20'000'000;
    const auto before = std::chrono::steady_clock::now();
    const Polled polled = Poll(guest, {Sleep(kNapNs, clock), Sleep(kHourNs)});
    EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::nanoseconds(kNapNs));
    ASSERT_EQ(polled.events.size(), 1U);
    EXPECT_EQ(polled.events[0].userdata, 77U);
    EXPECT_EQ(polled.events[0].error, 0U);
    EXPECT_EQ(polled.events[0].type, EventType::kClock);
  }
}

TEST(WasiPoll, AnAbsoluteTimeInThePastIsDueAndOneInTheFutureIsWaitedFor) {
  Guest guest(WasiConfig{});
  EXPECT_EQ(Poll(guest, {Sleep(1, 0, kSubclockAbstime)}).events.size(), 1U);
  EXPECT_EQ(Poll(guest, {Sleep(1, 1, kSubclockAbstime)}).events.size(), 1U);
  const std::uint32_t now = guest.Allocate(8);
  ASSERT_EQ(guest.Call("clock_time_get", 0, 0, now), Errno::kSuccess);
  const std::uint64_t due = guest.Load<std::uint64_t>(now) + 10'000'000;
  EXPECT_EQ(Poll(guest, {Sleep(due, 0, kSubclockAbstime)}).events.size(), 1U);
  ASSERT_EQ(guest.Call("clock_time_get", 0, 0, now), Errno::kSuccess);
  EXPECT_GE(guest.Load<std::uint64_t>(now), due);
}

TEST(WasiPoll, MistakesInOneSubscriptionAreItsEvent) {
  Guest guest(WasiConfig{});
  const auto error_of = [&](const Subscription& subscription) {
    const Polled polled = Poll(guest, {subscription, Sleep(kHourNs)});
    EXPECT_EQ(polled.events.size(), 1U);
    return static_cast<Errno>(polled.events.at(0).error);
  };
  EXPECT_EQ(error_of(OnDescriptor(EventType::kFdRead, 50)), Errno::kBadf);
  EXPECT_EQ(error_of(OnDescriptor(EventType::kFdRead, 1)), Errno::kNotcapable);
  EXPECT_EQ(error_of(Sleep(0, 9)), Errno::kInval);
  EXPECT_EQ(error_of(Sleep(0, 2)), Errno::kNotsup);
  EXPECT_EQ(error_of(Sleep(0, 1, 2)), Errno::kInval);
}

TEST(WasiPoll, StreamsBecomeReady) {
  Pipe in = Pipe::Make();
  Pipe out = Pipe::Make();
  WasiConfig config;
  config.stdin_fd = std::move(in.reader);
  config.stdout_fd = std::move(out.writer);
  Guest guest(std::move(config));
  const Subscription readable = OnDescriptor(EventType::kFdRead, 0);
  Polled polled = Poll(guest, {readable, OnDescriptor(EventType::kFdWrite, 1)});
  ASSERT_EQ(polled.events.size(), 1U);
  EXPECT_EQ(polled.events[0].userdata, 1001U);
  EXPECT_EQ(polled.events[0].type, EventType::kFdWrite);

  ASSERT_EQ(write(in.writer.get(), "x", 1), 1);
  polled = Poll(guest, {readable, readable, Sleep(kHourNs)});
  ASSERT_EQ(polled.events.size(), 2U);
  EXPECT_EQ(polled.events[1].bytes, 1U);
  EXPECT_EQ(polled.events[1].flags, 0U);

  ASSERT_EQ(guest.Read(0, 1).second, "x");
  in.writer.Reset();
  polled = Poll(guest, {readable, Sleep(kHourNs)});
  ASSERT_EQ(polled.events.size(), 1U);
  EXPECT_EQ(polled.events[0].bytes, 0U);
  EXPECT_EQ(polled.events[0].flags, kEventHangup);
}

TEST(WasiPoll, ClosedStreamsAndFilesAreReadyAtOnce) {
  TempDir dir;
  dir.WriteFile("f", "12345");
  Guest guest(WithDirectory(dir));
  const std::uint32_t file = guest.MustOpen(3, "f", 0, kReadOnly);
  ASSERT_EQ(guest.Read(file, 2).second, "12");
  const Polled polled =
      Poll(guest, {OnDescriptor(EventType::kFdRead, 0), OnDescriptor(EventType::kFdWrite, 1),
                   OnDescriptor(EventType::kFdRead, file), Sleep(kHourNs)});
  ASSERT_EQ(polled.events.size(), 3U);
  EXPECT_EQ(polled.events[0].flags, kEventHangup);
  EXPECT_EQ(polled.events[1].flags, 0U);
  EXPECT_EQ(polled.events[2].bytes, 3U);
}

TEST(WasiPoll, AsksForEachHostDescriptorOnce) {
  Pipe out = Pipe::Make();
  WasiConfig config;
  config.stdout_fd = std::move(out.writer);
  Guest guest(std::move(config));
  // More subscriptions than a process may have descriptors.
  EXPECT_EQ(Poll(guest, std::vector(4096, OnDescriptor(EventType::kFdWrite, 1))).events.size(),
            4096U);
}

TEST(WasiPoll, AStopWakesASleeper) {
  Pipe in = Pipe::Make();
  WasiConfig config;
  config.stdin_fd = std::move(in.reader);
  Guest guest(std::move(config));
  {
    const std::jthread sleeper([&] {
      EXPECT_EQ(Poll(guest, {Sleep(kHourNs), OnDescriptor(EventType::kFdRead, 0)}).control,
                Control::kStopped);
    });
    guest.stop().Signal();
  }
  EXPECT_EQ(Poll(guest, {Sleep(~0ULL)}).control, Control::kStopped);
}

}  // namespace
}  // namespace bulkhead::wasi
