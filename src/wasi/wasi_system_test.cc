#include <functional>
#include <set>

#include "wasi/descriptor_table.h"
#include "wasi/test_guest.h"

namespace bulkhead::wasi {
namespace {

constexpr std::uint32_t kBadAddress = 0xFFFFFFF0;

TEST(GuestMemory, KnowsItsBounds) {
  std::vector<std::uint8_t> bytes(16);
  const GuestMemory memory{bytes.data(), bytes.size()};
  EXPECT_TRUE(memory.Contains(0, 16));
  EXPECT_TRUE(memory.Contains(16, 0));
  EXPECT_FALSE(memory.Contains(17, 0));
  EXPECT_FALSE(memory.Contains(1, 16));
  EXPECT_FALSE(memory.Contains(0xFFFFFFFF, 1));
  EXPECT_FALSE(memory.Contains(1, 0xFFFFFFFFFFFFFFFF));
  EXPECT_TRUE(memory.Put(12, std::uint32_t{0x04030201}));
  EXPECT_EQ(memory.Get<std::uint8_t>(12), 1);
  EXPECT_FALSE(memory.Put(13, std::uint32_t{0}));
  EXPECT_EQ(memory.Get<std::uint64_t>(9), std::nullopt);
  EXPECT_EQ(memory.Span(4, 12).value_or(std::span<std::uint8_t>()).size(), 12U);
}

TEST(WasiErrno, HostNumbersBecomeTheGuests) {
  EXPECT_EQ(FromHost(0), Errno::kSuccess);
  EXPECT_EQ(FromHost(ENOENT), Errno::kNoent);
  EXPECT_EQ(FromHost(EXDEV), Errno::kXdev);
  EXPECT_EQ(FromHost(EUCLEAN), Errno::kIo);  // no counterpart
}

TEST(WasiTable, HoldsAllFortySixSortedWithSaneSignatures) {
  const auto functions = Functions();
  EXPECT_EQ(functions.size(), 46U);
  EXPECT_TRUE(std::is_sorted(functions.begin(), functions.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  std::set<std::string_view> names;
  for (const Function& function : functions) {
    EXPECT_TRUE(names.insert(function.name).second) << function.name;
    const std::size_t colon = function.signature.find(':');
    ASSERT_NE(colon, std::string_view::npos) << function.name;
    EXPECT_LE(colon, 9U);
    EXPECT_EQ(function.signature.substr(colon + 1), function.name == "proc_exit" ? "" : "i");
  }
}

TEST(WasiArguments, ArgsAndEnvironment) {
  WasiConfig config;
  config.args = {"prog", "", "x y"};
  config.env = {"A=1"};
  Guest guest(std::move(config));
  const std::uint32_t count = guest.Allocate(4);
  const std::uint32_t bytes = guest.Allocate(4);
  ASSERT_EQ(guest.Call("args_sizes_get", count, bytes), Errno::kSuccess);
  EXPECT_EQ(guest.Load<std::uint32_t>(count), 3U);
  EXPECT_EQ(guest.Load<std::uint32_t>(bytes), 10U);
  const std::uint32_t pointers = guest.Allocate(12);
  const std::uint32_t texts = guest.Allocate(10);
  ASSERT_EQ(guest.Call("args_get", pointers, texts), Errno::kSuccess);
  EXPECT_EQ(guest.Text(texts, 10), std::string("prog\0\0x y\0", 10));
  EXPECT_EQ(guest.Load<std::uint32_t>(pointers + 8), texts + 6);
  ASSERT_EQ(guest.Call("environ_sizes_get", count, bytes), Errno::kSuccess);
  EXPECT_EQ(guest.Load<std::uint32_t>(bytes), 4U);
  ASSERT_EQ(guest.Call("environ_get", pointers, texts), Errno::kSuccess);
  EXPECT_EQ(guest.Text(texts, 4), std::string("A=1\0", 4));
}

TEST(WasiArguments, BadAddressesHaveNoPartialEffect) {
  WasiConfig config;
  config.args = {"prog"};
  Guest guest(std::move(config));
  const std::uint32_t good = guest.Allocate(8);
  EXPECT_EQ(guest.Call("args_sizes_get", good, kBadAddress), Errno::kFault);
  EXPECT_EQ(guest.Call("args_get", good, kBadAddress), Errno::kFault);
  EXPECT_EQ(guest.Call("args_get", kBadAddress, good), Errno::kFault);
  EXPECT_EQ(guest.Load<std::uint64_t>(good), 0U);
}

TEST(WasiConfiguration, RefusesWhatTheGuestCouldNotUse) {
  TempDir dir;
  const auto create = [&](const std::function<void(WasiConfig&)>& change) {
    WasiConfig config = WithDirectory(dir);
    OutputGrant grant;
    grant.file = UniqueFd(open((dir.path() / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    grant.name = std::string("f");
    config.output = std::move(grant);
    change(config);
    return Wasi::Create(std::move(config));
  };
  EXPECT_TRUE(create([](WasiConfig&) {}));
  const std::vector<std::function<void(WasiConfig&)>> mistakes = {
      [](WasiConfig& c) { c.args.emplace_back("a\0b", 3); },
      [](WasiConfig& c) { c.env.emplace_back("a\0b", 3); },
      [](WasiConfig& c) { c.preopens[0].guest_path = std::string(""); },
      [](WasiConfig& c) { c.preopens[0].guest_path = std::string("\xFF"); },
      [](WasiConfig& c) { c.preopens[0].guest_path = std::string("/output"); },
      [](WasiConfig& c) { c.preopens[0].dir = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); },
      [](WasiConfig& c) { c.output->name = std::string(".."); },
      [](WasiConfig& c) { c.output->name = std::string("a/b"); },
      [](WasiConfig& c) { c.output->name = std::string(""); },
      [](WasiConfig& c) { c.output->file = UniqueFd(open("/", O_PATH | O_CLOEXEC)); },
  };
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    const auto wasi = create(mistakes[i]);
    ASSERT_FALSE(wasi) << i;
    EXPECT_EQ(wasi.error().code, ErrorCode::kInvalidArgument) << i;
  }
  const auto closed = create([](WasiConfig& c) { c.preopens[0].dir = UniqueFd(); });
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, ErrorCode::kIo);
}

TEST(WasiClock, ReadsAllFourAndNoOther) {
  Guest guest(WasiConfig{});
  const std::uint32_t out = guest.Allocate(8);
  for (std::uint32_t id = 0; id < 4; ++id) {
    ASSERT_EQ(guest.Call("clock_time_get", id, 0, out), Errno::kSuccess);
    EXPECT_NE(guest.Load<std::uint64_t>(out), 0U);
    ASSERT_EQ(guest.Call("clock_res_get", id, out), Errno::kSuccess);
    EXPECT_NE(guest.Load<std::uint64_t>(out), 0U);
  }
  EXPECT_EQ(guest.Call("clock_time_get", 4, 0, out), Errno::kInval);
  EXPECT_EQ(guest.Call("clock_res_get", 0xFFFFFFFF, out), Errno::kInval);
  EXPECT_EQ(guest.Call("clock_time_get", 1, 0, kBadAddress), Errno::kFault);
}

TEST(WasiRandom, FillsLargeBuffersAndNothingElse) {
  Guest guest(WasiConfig{});
  const std::size_t bytes = (1 << 20) + 4096;
  const std::uint32_t buffer = guest.Allocate(bytes);
  ASSERT_EQ(guest.Call("random_get", buffer, bytes), Errno::kSuccess);
  const std::string end = guest.Text(buffer + static_cast<std::uint32_t>(bytes) - 64, 64);
  EXPECT_NE(end, std::string(64, '\0'));
  EXPECT_EQ(guest.Text(buffer + static_cast<std::uint32_t>(bytes), 64), std::string(64, '\0'));
  EXPECT_EQ(guest.Call("random_get", buffer, 0), Errno::kSuccess);
  EXPECT_EQ(guest.Call("random_get", buffer, 0xFFFFFFFF), Errno::kFault);
  guest.stop().Signal();
  EXPECT_EQ(guest.CallAny("random_get", buffer, bytes).first, Control::kStopped);
}

TEST(WasiProcess, TheFirstExitCodeCounts) {
  Guest guest(WasiConfig{});
  EXPECT_EQ(guest.Facts().exit_code, std::nullopt);
  EXPECT_EQ(guest.CallAny("proc_exit", 0x80000001).first, Control::kExit);
  EXPECT_EQ(guest.CallAny("proc_exit", 7).first, Control::kExit);
  EXPECT_EQ(guest.Facts().exit_code, 0x80000001U);
}

TEST(WasiProcess, SignalsDoWhatTheyDoByDefault) {
  Guest guest(WasiConfig{});
  EXPECT_EQ(guest.Call("proc_raise", 0), Errno::kSuccess);
  EXPECT_EQ(guest.Call("proc_raise", 16), Errno::kSuccess);  // chld
  EXPECT_EQ(guest.Call("proc_raise", 18), Errno::kNotsup);   // stop
  EXPECT_EQ(guest.Call("proc_raise", 31), Errno::kInval);
  EXPECT_EQ(guest.CallAny("proc_raise", 6).first, Control::kExit);  // abrt
  EXPECT_EQ(guest.Facts().exit_code, 134U);
}

TEST(WasiProcess, Yields) {
  Guest guest(WasiConfig{});
  EXPECT_EQ(guest.Call("sched_yield"), Errno::kSuccess);
}

TEST(WasiSockets, DoNotExist) {
  Guest guest(WasiConfig{});
  const std::uint32_t out = guest.Allocate(8);
  EXPECT_EQ(guest.Call("sock_accept", 0, 0, out), Errno::kNotsock);
  EXPECT_EQ(guest.Call("sock_recv", 0, 0, 0, 0, out, out), Errno::kNotsock);
  EXPECT_EQ(guest.Call("sock_send", 1, 0, 0, 0, out), Errno::kNotsock);
  EXPECT_EQ(guest.Call("sock_shutdown", 1, 3), Errno::kNotsock);
  EXPECT_EQ(guest.Call("sock_shutdown", 99, 3), Errno::kBadf);
}

class NoDescriptor final : public Descriptor {
 public:
  FileType file_type() const override { return FileType::kUnknown; }

  Rights applicable_rights() const override { return rights::kFdRead; }

  Errno InapplicableError(Rights) const override { return Errno::kSpipe; }

  std::uint16_t flags() const override { return 0; }

  Answer<void> SetFlags(std::uint16_t) override { return {}; }

  Answer<Filestat> Stat() override { return Filestat{}; }
};

TableEntry MakeEntry(Rights base = 0) {
  return {std::make_shared<NoDescriptor>(), base, 0};
}

TEST(DescriptorTable, GivesTheLowestFreeNumberUpToItsBound) {
  DescriptorTable table;
  for (std::uint32_t i = 0; i < DescriptorTable::kDescriptorsMax; ++i) {
    EXPECT_EQ(table.Insert(MakeEntry()).value(), i);
  }
  EXPECT_EQ(table.Insert(MakeEntry()).error().error, Errno::kMfile);
  ASSERT_TRUE(table.Close(700));
  ASSERT_TRUE(table.Close(5));
  EXPECT_EQ(table.Insert(MakeEntry()).value(), 5U);
  EXPECT_EQ(table.Insert(MakeEntry()).value(), 700U);
}

TEST(DescriptorTable, AReservationIsInvisibleAndGivenBack) {
  DescriptorTable table;
  {
    const auto reservation = table.Reserve();
    ASSERT_TRUE(reservation);
    EXPECT_EQ(reservation->fd(), 0U);
    EXPECT_EQ(table.Find(0, 0).error().error, Errno::kBadf);
    EXPECT_EQ(table.Close(0).error().error, Errno::kBadf);
    EXPECT_EQ(table.Insert(MakeEntry()).value(), 1U);
    EXPECT_EQ(table.Renumber(1, 0).error().error, Errno::kBadf);
  }
  EXPECT_EQ(table.Insert(MakeEntry()).value(), 0U);
}

TEST(DescriptorTable, RightsOnlyShrinkAndTheErrorNamesTheMistake) {
  DescriptorTable table;
  ASSERT_TRUE(table.Insert(MakeEntry(rights::kFdRead)));
  EXPECT_TRUE(table.Find(0, rights::kFdRead));
  EXPECT_EQ(table.Find(0, rights::kFdSeek).error().error, Errno::kSpipe);
  EXPECT_EQ(table.NarrowRights(0, rights::kFdRead | rights::kFdSeek, 0).error().error,
            Errno::kNotcapable);
  EXPECT_EQ(table.NarrowRights(0, 0, 1).error().error, Errno::kNotcapable);
  ASSERT_TRUE(table.NarrowRights(0, 0, 0));
  EXPECT_EQ(table.Find(0, rights::kFdRead).error().error, Errno::kNotcapable);
  EXPECT_EQ(table.NarrowRights(1, 0, 0).error().error, Errno::kBadf);
}

TEST(DescriptorTable, RenumberMovesAndCloses) {
  DescriptorTable table;
  const TableEntry first = MakeEntry();
  const TableEntry second = MakeEntry();
  ASSERT_TRUE(table.Insert(first));
  ASSERT_TRUE(table.Insert(second));
  ASSERT_TRUE(table.Renumber(1, 0));
  EXPECT_EQ(table.Find(0, 0)->descriptor, second.descriptor);
  EXPECT_EQ(table.Find(1, 0).error().error, Errno::kBadf);
  EXPECT_EQ(first.descriptor.use_count(), 1);
  ASSERT_TRUE(table.Renumber(0, 0));
  EXPECT_TRUE(table.Find(0, 0));
}

}  // namespace
}  // namespace bulkhead::wasi
