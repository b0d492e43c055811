#include <limits>

#include "wasi/test_guest.h"

namespace bulkhead::wasi {
namespace {

constexpr std::uint32_t kOut = Guest::kFirstPreopen;
constexpr std::uint32_t kHost = Guest::kFirstPreopen;
constexpr std::uint64_t kBytesMax = 10;

WasiConfig WithOutput(const TempDir& dir) {
  WasiConfig config;
  OutputGrant grant;
  grant.file =
      UniqueFd(open((dir.path() / "staged").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  grant.name = "result.bin";
  grant.bytes_max = kBytesMax;
  config.output = std::move(grant);
  return config;
}

class WasiOutput : public testing::Test {
 protected:
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const Guest::Entry& entry : guest_.List(kOut)) {
      names.push_back(entry.name);
    }
    return names;
  }

  TempDir dir_;
  Guest guest_{WithOutput(dir_)};
};

TEST_F(WasiOutput, IsAPreopenedDirectoryThatStartsEmpty) {
  const std::uint32_t out = guest_.Allocate(16);
  ASSERT_EQ(guest_.Call("fd_prestat_get", kOut, out), Errno::kSuccess);
  ASSERT_EQ(guest_.Call("fd_prestat_dir_name", kOut, out, guest_.Load<Prestat>(out).name_bytes),
            Errno::kSuccess);
  EXPECT_EQ(guest_.Text(out, 7), "/output");
  EXPECT_EQ(Names(), (std::vector<std::string>{".", ".."}));
  EXPECT_EQ(guest_.Stat(kOut).second.filetype, FileType::kDirectory);
  EXPECT_EQ(guest_.StatPath(kOut, "result.bin").first, Errno::kNoent);
  EXPECT_EQ(guest_.Open(kOut, "result.bin", 0, kReadWrite).first, Errno::kNoent);
  EXPECT_FALSE(guest_.Facts().output_created);
}

TEST_F(WasiOutput, OneFileIsCreatedWrittenAndReadAgain) {
  const std::uint32_t fd = guest_.MustOpen(kOut, "result.bin", oflags::kCreat, kReadWrite);
  EXPECT_EQ(guest_.Write(fd, "hello"), std::pair(Errno::kSuccess, 5U));
  EXPECT_EQ(guest_.Seek(fd, 1, kWhenceSet).second, 1U);
  EXPECT_EQ(guest_.Read(fd, 10).second, "ello");
  const std::uint32_t other = guest_.MustOpen(kOut, "./result.bin", 0, kReadOnly);
  EXPECT_EQ(guest_.Read(other, 10).second, "hello") << "a position of its own";
  EXPECT_EQ(guest_.Write(other, "x").first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Open(kOut, "result.bin", oflags::kCreat | oflags::kExcl, kReadWrite).first,
            Errno::kExist);
  EXPECT_EQ(Names(), (std::vector<std::string>{".", "..", "result.bin"}));
  const Filestat stat = guest_.StatPath(kOut, "result.bin").second;
  EXPECT_EQ(stat.size, 5U);
  EXPECT_EQ(stat.filetype, FileType::kRegularFile);
  EXPECT_EQ(stat.ino, guest_.Stat(fd).second.ino);
  EXPECT_EQ(guest_.Call("fd_sync", fd), Errno::kSuccess);
  EXPECT_EQ(guest_.Call("fd_datasync", fd), Errno::kSuccess);
  EXPECT_EQ(guest_.Call("fd_sync", kOut), Errno::kSuccess);
  EXPECT_EQ(guest_.Call("fd_advise", fd, 0, 0, 3), Errno::kSuccess);
  EXPECT_EQ(guest_.Call("fd_advise", fd, 0, 0, 9), Errno::kInval);
  EXPECT_EQ(dir_.ReadFile("staged"), "hello");
  EXPECT_TRUE(guest_.Facts().output_created);
  EXPECT_EQ(guest_.Facts().output_bytes, 5U);
}

TEST_F(WasiOutput, TruncateAndAppend) {
  ASSERT_EQ(
      guest_.Write(guest_.MustOpen(kOut, "result.bin", oflags::kCreat, kReadWrite), "hello").first,
      Errno::kSuccess);
  const std::uint32_t fd = guest_.MustOpen(kOut, "result.bin", oflags::kCreat | oflags::kTrunc,
                                           kReadWrite, fdflags::kAppend);
  EXPECT_EQ(dir_.ReadFile("staged"), "");
  ASSERT_EQ(guest_.Write(fd, "ab").first, Errno::kSuccess);
  ASSERT_EQ(guest_.Seek(fd, 0, kWhenceSet).first, Errno::kSuccess);
  ASSERT_EQ(guest_.Write(fd, "cd").first, Errno::kSuccess);
  EXPECT_EQ(guest_.Seek(fd, 0, kWhenceCur).second, 4U);
  ASSERT_EQ(guest_.Call("fd_fdstat_set_flags", fd, 0), Errno::kSuccess);
  ASSERT_EQ(guest_.Seek(fd, -1, kWhenceEnd).first, Errno::kSuccess);
  ASSERT_EQ(guest_.Write(fd, "D").first, Errno::kSuccess);
  EXPECT_EQ(dir_.ReadFile("staged"), "abcD");
  EXPECT_EQ(guest_.Seek(fd, -1, kWhenceSet).first, Errno::kInval);
  EXPECT_EQ(guest_.Seek(fd, std::numeric_limits<std::int64_t>::max(), kWhenceEnd).first,
            Errno::kOverflow);
  const std::uint32_t count = guest_.Allocate(4);
  const std::uint32_t list = guest_.OneBuffer(guest_.Store("xy"), 2);
  ASSERT_EQ(guest_.Call("fd_pwrite", fd, list, 1, 0, count), Errno::kSuccess);
  ASSERT_EQ(guest_.Call("fd_pread", fd, list, 1, 2, count), Errno::kSuccess);
  EXPECT_EQ(dir_.ReadFile("staged"), "xycD");
}

TEST_F(WasiOutput, NothingGetsBeyondTheLimit) {
  const std::uint32_t fd = guest_.MustOpen(kOut, "result.bin", oflags::kCreat, kReadWrite);
  ASSERT_EQ(guest_.Write(fd, "0123456789").second, kBytesMax);
  EXPECT_FALSE(guest_.Facts().output_limit_hit) << "exactly the limit is fine";
  EXPECT_EQ(guest_.Write(fd, "x").first, Errno::kFbig);
  EXPECT_TRUE(guest_.Facts().output_limit_hit);
  ASSERT_EQ(guest_.Seek(fd, 8, kWhenceSet).first, Errno::kSuccess);
  EXPECT_EQ(guest_.Write(fd, "abc"), std::pair(Errno::kSuccess, 2U)) << "what fits is written";
  ASSERT_EQ(guest_.Seek(fd, 1 << 20, kWhenceSet).first, Errno::kSuccess);
  EXPECT_EQ(guest_.Write(fd, "x").first, Errno::kFbig);
  EXPECT_EQ(guest_.Call("fd_filestat_set_size", fd, kBytesMax + 1), Errno::kFbig);
  EXPECT_EQ(guest_.Call("fd_allocate", fd, 5, 6), Errno::kFbig);
  EXPECT_EQ(guest_.Call("fd_allocate", fd, ~0ULL, 2), Errno::kFbig);
  EXPECT_EQ(guest_.Call("fd_allocate", fd, 0, 0), Errno::kInval);
  EXPECT_EQ(guest_.Call("fd_filestat_set_size", fd, 4), Errno::kSuccess);
  EXPECT_EQ(dir_.ReadFile("staged"), "0123");
}

TEST_F(WasiOutput, SettingASizeBeyondTheLimitIsAHitToo) {
  const std::uint32_t fd = guest_.MustOpen(kOut, "result.bin", oflags::kCreat, kReadWrite);
  EXPECT_EQ(guest_.Call("fd_filestat_set_size", fd, 11), Errno::kFbig);
  EXPECT_TRUE(guest_.Facts().output_limit_hit);
}

TEST_F(WasiOutput, UnlinkingForgetsTheContentAndItsHandles) {
  const std::uint32_t fd = guest_.MustOpen(kOut, "result.bin", oflags::kCreat, kReadWrite);
  ASSERT_EQ(guest_.Write(fd, "hello").first, Errno::kSuccess);
  ASSERT_EQ(guest_.OnPath("path_unlink_file", kOut, "result.bin"), Errno::kSuccess);
  EXPECT_EQ(guest_.OnPath("path_unlink_file", kOut, "result.bin"), Errno::kNoent);
  EXPECT_FALSE(guest_.Facts().output_created);
  EXPECT_EQ(guest_.Facts().output_bytes, 0U);
  EXPECT_EQ(dir_.ReadFile("staged"), "");
  const std::uint32_t again = guest_.MustOpen(kOut, "result.bin", oflags::kCreat, kReadWrite);
  EXPECT_EQ(guest_.Write(fd, "x").first, Errno::kStale);
  EXPECT_EQ(guest_.Read(fd, 1).first, Errno::kStale);
  EXPECT_EQ(guest_.Stat(fd).first, Errno::kStale);
  EXPECT_EQ(guest_.Call("fd_filestat_set_size", fd, 1), Errno::kStale);
  EXPECT_EQ(guest_.Seek(fd, 0, kWhenceEnd).first, Errno::kStale);
  EXPECT_EQ(guest_.Call("fd_close", fd), Errno::kSuccess);
  EXPECT_EQ(guest_.Write(again, "new").first, Errno::kSuccess);
  EXPECT_EQ(dir_.ReadFile("staged"), "new");
}

TEST_F(WasiOutput, NoOtherNameComesIntoBeing) {
  EXPECT_EQ(guest_.Open(kOut, "other", oflags::kCreat, kReadWrite).first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Open(kOut, "result.bin.tmp", oflags::kCreat, kReadWrite).first,
            Errno::kNotcapable);
  EXPECT_EQ(guest_.Open(kOut, "other", 0, kReadOnly).first, Errno::kNoent);
  EXPECT_EQ(guest_.Open(kOut, "d/x", oflags::kCreat, kReadWrite).first, Errno::kNoent);
  EXPECT_EQ(guest_.OnPath("path_create_directory", kOut, "d"), Errno::kNotcapable);
  EXPECT_EQ(guest_.OnPath("path_create_directory", kOut, "result.bin"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Symlink("x", kOut, "result.bin"), Errno::kNotcapable);
  guest_.MustOpen(kOut, "result.bin", oflags::kCreat, kReadWrite);
  EXPECT_EQ(guest_.OnPath("path_create_directory", kOut, "result.bin"), Errno::kExist);
  EXPECT_EQ(guest_.Link(kOut, "result.bin", kOut, "copy"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Link(kOut, "result.bin", kOut, "result.bin"), Errno::kExist);
  EXPECT_EQ(guest_.Rename(kOut, "result.bin", kOut, "other"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Rename(kOut, "other", kOut, "result.bin"), Errno::kNoent);
  EXPECT_EQ(guest_.Rename(kOut, "result.bin", kOut, "result.bin"), Errno::kSuccess);
  EXPECT_EQ(guest_.Rename(kOut, ".", kOut, "result.bin"), Errno::kBusy);
  EXPECT_EQ(guest_.OnPath("path_remove_directory", kOut, "result.bin"), Errno::kNotdir);
  EXPECT_EQ(guest_.OnPath("path_unlink_file", kOut, "."), Errno::kIsdir);
  EXPECT_EQ(guest_.OnPath("path_remove_directory", kOut, "."), Errno::kInval);
  EXPECT_EQ(guest_.ReadLink(kOut, "result.bin").first, Errno::kInval);
  EXPECT_EQ(Names().size(), 3U);
}

TEST_F(WasiOutput, PathsObeyTheUsualRules) {
  EXPECT_EQ(guest_.Open(kOut, "..", 0, kReadOnly).first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Open(kOut, "../etc", oflags::kCreat, kReadWrite).first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Open(kOut, "/result.bin", oflags::kCreat, kReadWrite).first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Open(kOut, "result.bin/", oflags::kCreat, kReadWrite).first, Errno::kIsdir);
  EXPECT_EQ(guest_.Open(kOut, "result.bin/x", oflags::kCreat, kReadWrite).first, Errno::kNoent);
  EXPECT_EQ(guest_.Open(kOut, ".", oflags::kCreat | oflags::kExcl, kReadOnly).first, Errno::kExist);
  EXPECT_EQ(guest_.Open(kOut, ".", oflags::kDirectory, kReadWrite).first, Errno::kIsdir);
  const std::uint32_t sub = guest_.MustOpen(kOut, "./", oflags::kDirectory, rights::kDirectory);
  guest_.MustOpen(sub, ".//result.bin", oflags::kCreat, kReadWrite);
  EXPECT_EQ(guest_.Call("fd_prestat_get", sub, guest_.Allocate(8)), Errno::kBadf);
  EXPECT_EQ(guest_.Open(kOut, "result.bin/", 0, kReadOnly).first, Errno::kNotdir);
  EXPECT_EQ(guest_.Open(kOut, "result.bin/x", 0, kReadOnly).first, Errno::kNotdir);
  EXPECT_EQ(guest_.Open(kOut, "result.bin", oflags::kDirectory, kReadOnly).first, Errno::kNotdir);
  EXPECT_EQ(guest_.StatPath(kOut, "result.bin/").first, Errno::kNotdir);
}

TEST_F(WasiOutput, TimesCannotBeSet) {
  const std::uint32_t fd = guest_.MustOpen(kOut, "result.bin", oflags::kCreat, kReadWrite);
  EXPECT_EQ(guest_.Call("fd_filestat_set_times", fd, 0, 0, fstflags::kMtimNow), Errno::kNotsup);
  EXPECT_EQ(guest_.Call("path_filestat_set_times", kOut, 0, guest_.Store("result.bin"), 10, 0, 0,
                        fstflags::kMtimNow),
            Errno::kNotsup);
}

TEST(WasiOutputBesideGrants, NothingMovesBetweenThem) {
  TempDir dir;
  TempDir host;
  host.WriteFile("f", "content");
  WasiConfig config = WithOutput(dir);
  config.preopens.push_back({host.Open(), "/data", true});
  Guest guest(std::move(config));
  constexpr std::uint32_t kOutput = kHost + 1;  // after the preopens
  guest.MustOpen(kOutput, "result.bin", oflags::kCreat, kReadWrite);
  EXPECT_EQ(guest.Rename(kHost, "f", kOutput, "result.bin"), Errno::kXdev);
  EXPECT_EQ(guest.Rename(kOutput, "result.bin", kHost, "g"), Errno::kXdev);
  EXPECT_EQ(guest.Link(kHost, "f", kOutput, "result.bin"), Errno::kXdev);
  EXPECT_EQ(guest.Link(kOutput, "result.bin", kHost, "g"), Errno::kXdev);
}

}  // namespace
}  // namespace bulkhead::wasi
