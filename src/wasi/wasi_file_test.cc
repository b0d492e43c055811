#include <sys/stat.h>

#include <thread>
#include <tuple>

#include "wasi/test_guest.h"

namespace bulkhead::wasi {
namespace {

constexpr std::uint32_t kDir = Guest::kFirstPreopen;

class WasiFile : public testing::Test {
 protected:
  TempDir dir_;
  Guest guest_{WithDirectory(dir_)};
};

TEST_F(WasiFile, CreateWriteSeekReadClose) {
  const std::uint32_t fd = guest_.MustOpen(kDir, "f", oflags::kCreat, kReadWrite);
  EXPECT_EQ(fd, 4U);
  EXPECT_EQ(guest_.Write(fd, "hello world"), std::pair(Errno::kSuccess, 11U));
  EXPECT_EQ(guest_.Seek(fd, -5, kWhenceEnd), std::pair(Errno::kSuccess, std::uint64_t{6}));
  EXPECT_EQ(guest_.Read(fd, 100).second, "world");
  EXPECT_EQ(guest_.Read(fd, 100).second, "");
  EXPECT_EQ(guest_.Seek(fd, -12, kWhenceCur).first, Errno::kInval);
  EXPECT_EQ(guest_.Seek(fd, 0, 3).first, Errno::kInval);
  const std::uint32_t position = guest_.Allocate(8);
  ASSERT_EQ(guest_.Call("fd_tell", fd, position), Errno::kSuccess);
  EXPECT_EQ(guest_.Load<std::uint64_t>(position), 11U);
  ASSERT_EQ(guest_.Call("fd_close", fd), Errno::kSuccess);
  EXPECT_EQ(guest_.Call("fd_close", fd), Errno::kBadf);
  EXPECT_EQ(dir_.ReadFile("f"), "hello world");
}

TEST_F(WasiFile, PositionalCallsLeaveThePositionAlone) {
  const std::uint32_t fd = guest_.MustOpen(kDir, "f", oflags::kCreat, kReadWrite);
  const std::uint32_t count = guest_.Allocate(4);
  const std::uint32_t list = guest_.OneBuffer(guest_.Store("abcd"), 4);
  ASSERT_EQ(guest_.Call("fd_pwrite", fd, list, 1, 2, count), Errno::kSuccess);
  EXPECT_EQ(guest_.Load<std::uint32_t>(count), 4U);
  EXPECT_EQ(guest_.Seek(fd, 0, kWhenceCur).second, 0U);
  const std::uint32_t buffer = guest_.Allocate(8);
  ASSERT_EQ(guest_.Call("fd_pread", fd, guest_.OneBuffer(buffer, 8), 1, 3, count), Errno::kSuccess);
  EXPECT_EQ(guest_.Text(buffer, guest_.Load<std::uint32_t>(count)), "bcd");
  EXPECT_EQ(guest_.Call("fd_pread", fd, list, 1, ~0ULL, count), Errno::kInval);
  EXPECT_EQ(guest_.Call("fd_pwrite", fd, list, 1, ~0ULL, count), Errno::kFbig);
}

TEST_F(WasiFile, AppendCanBeSetAndCleared) {
  const std::uint32_t fd = guest_.MustOpen(kDir, "f", oflags::kCreat, kReadWrite, fdflags::kAppend);
  ASSERT_EQ(guest_.Write(fd, "one").first, Errno::kSuccess);
  ASSERT_EQ(guest_.Seek(fd, 0, kWhenceSet).first, Errno::kSuccess);
  ASSERT_EQ(guest_.Write(fd, "two").first, Errno::kSuccess);
  EXPECT_EQ(guest_.StatDescriptor(fd).flags, fdflags::kAppend);
  ASSERT_EQ(guest_.Call("fd_fdstat_set_flags", fd, 0), Errno::kSuccess);
  ASSERT_EQ(guest_.Seek(fd, 0, kWhenceSet).first, Errno::kSuccess);
  ASSERT_EQ(guest_.Write(fd, "ONE").first, Errno::kSuccess);
  EXPECT_EQ(dir_.ReadFile("f"), "ONEtwo");
  EXPECT_EQ(guest_.Call("fd_fdstat_set_flags", fd, fdflags::kSync), Errno::kNotsup);
}

TEST_F(WasiFile, OpenFlagsDoWhatTheySay) {
  dir_.WriteFile("f", "content");
  EXPECT_EQ(guest_.Open(kDir, "f", oflags::kCreat | oflags::kExcl, kReadWrite).first,
            Errno::kExist);
  EXPECT_EQ(guest_.Open(kDir, "f", oflags::kDirectory, kReadOnly).first, Errno::kNotdir);
  EXPECT_EQ(guest_.Open(kDir, "missing", 0, kReadOnly).first, Errno::kNoent);
  EXPECT_EQ(guest_.Open(kDir, "f/", 0, kReadOnly).first, Errno::kNotdir);
  EXPECT_EQ(guest_.Open(kDir, "new/", oflags::kCreat, kReadWrite).first, Errno::kIsdir);
  EXPECT_EQ(guest_.Open(kDir, "d", oflags::kCreat | oflags::kDirectory, 0).first, Errno::kInval);
  EXPECT_EQ(guest_.Open(kDir, "f", 16, 0).first, Errno::kInval);
  EXPECT_EQ(guest_.Open(kDir, "f", 0, 0, {32}).first, Errno::kInval);
  EXPECT_EQ(guest_.Open(kDir, "f", 0, 0, {0, 2}).first, Errno::kInval);
  EXPECT_EQ(guest_.Open(kDir, ".", oflags::kDirectory, kReadWrite).first, Errno::kIsdir);
  EXPECT_EQ(dir_.ReadFile("f"), "content");
  guest_.MustOpen(kDir, "f", oflags::kTrunc, kReadWrite);
  EXPECT_EQ(dir_.ReadFile("f"), "");
}

TEST_F(WasiFile, ABadResultAddressCreatesNothing) {
  EXPECT_EQ(guest_.Call("path_open", kDir, 0, guest_.Store("f"), 1, oflags::kCreat, kReadWrite, 0,
                        0, 0xFFFFFFFE),
            Errno::kFault);
  EXPECT_EQ(guest_.Call("path_open", kDir, 0, 0xFFFFFFFE, 4, oflags::kCreat, kReadWrite, 0, 0,
                        guest_.Allocate(4)),
            Errno::kFault);
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "f"));
  EXPECT_EQ(guest_.MustOpen(kDir, "g", oflags::kCreat, kReadWrite), 4U) << "no number was lost";
}

TEST_F(WasiFile, AFullTableCreatesNothing) {
  dir_.WriteFile("f", "");
  std::uint32_t fd = 0;
  Errno error = Errno::kSuccess;
  while (error == Errno::kSuccess) {
    std::tie(error, fd) = guest_.Open(kDir, "f", 0, kReadOnly);
  }
  EXPECT_EQ(error, Errno::kMfile);
  EXPECT_EQ(guest_.Open(kDir, "new", oflags::kCreat, kReadWrite).first, Errno::kMfile);
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "new"));
}

TEST_F(WasiFile, RightsAreEnforcedAndNarrowed) {
  dir_.WriteFile("f", "content");
  const std::uint32_t fd = guest_.MustOpen(kDir, "f", 0, kReadWrite);
  const std::uint32_t reader = guest_.MustOpen(kDir, "f", 0, rights::kFdRead);
  EXPECT_EQ(guest_.Write(reader, "x").first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Seek(reader, 1, kWhenceSet).first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Stat(reader).first, Errno::kNotcapable);
  const Rights no_read = kReadWrite & ~rights::kFdRead;
  ASSERT_EQ(guest_.Call("fd_fdstat_set_rights", fd, no_read, 0), Errno::kSuccess);
  EXPECT_EQ(guest_.StatDescriptor(fd).rights_base, no_read);
  EXPECT_EQ(guest_.Read(fd, 1).first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Call("fd_fdstat_set_rights", fd, kReadWrite, 0), Errno::kNotcapable);
  EXPECT_EQ(guest_.Call("fd_fdstat_set_rights", 99, 0, 0), Errno::kBadf);
}

TEST_F(WasiFile, ADirectoryPassesOnOnlyWhatItHas) {
  dir_.WriteFile("f", "");
  const std::uint32_t out = guest_.Allocate(4);
  ASSERT_EQ(guest_.Call("path_open", kDir, 0, guest_.Store("."), 1, oflags::kDirectory,
                        rights::kDirectory, rights::kFdRead, 0, out),
            Errno::kSuccess);
  const auto sub = guest_.Load<std::uint32_t>(out);
  const auto open_with = [&](Rights base, Rights inheriting, std::uint32_t flags) {
    return guest_.Call("path_open", sub, 0, guest_.Store("f"), 1, 0, base, inheriting, flags, out);
  };
  EXPECT_EQ(open_with(rights::kFdRead, 0, 0), Errno::kSuccess);
  EXPECT_EQ(open_with(rights::kFdRead | rights::kFdWrite, 0, 0), Errno::kNotcapable);
  EXPECT_EQ(open_with(rights::kFdRead, rights::kFdWrite, 0), Errno::kNotcapable);
  EXPECT_EQ(open_with(rights::kFdRead, 0, fdflags::kSync), Errno::kNotcapable);
  EXPECT_EQ(open_with(rights::kFdRead, 0, fdflags::kDsync), Errno::kNotcapable);
  EXPECT_EQ(open_with(rights::kFdRead | ~rights::kAll, ~rights::kAll, 0), Errno::kSuccess)
      << "rights that never apply are not missed";
  ASSERT_EQ(guest_.Call("fd_fdstat_set_rights", sub, 0, 0), Errno::kSuccess);
  EXPECT_EQ(open_with(0, 0, 0), Errno::kNotcapable);
}

TEST_F(WasiFile, ReadOnlyFilesNeverGetTheRightsToChange) {
  dir_.WriteFile("f", "content");
  const std::uint32_t fd =
      guest_.MustOpen(kDir, "f", 0, rights::kFdRead | rights::kFdFilestatSetSize);
  EXPECT_EQ(guest_.Call("fd_filestat_set_size", fd, 0), Errno::kNotcapable);
  EXPECT_EQ(dir_.ReadFile("f"), "content");
}

TEST_F(WasiFile, DirectoryCallsOnAFileAndFileCallsOnADirectory) {
  dir_.WriteFile("f", "");
  const std::uint32_t file = guest_.MustOpen(kDir, "f", 0, kReadWrite);
  EXPECT_EQ(guest_.Open(file, "x", oflags::kCreat, 0).first, Errno::kNotdir);
  EXPECT_EQ(guest_.Call("fd_readdir", file, 64, 64, 0, guest_.Allocate(4)), Errno::kNotdir);
  EXPECT_EQ(guest_.Call("fd_prestat_get", file, guest_.Allocate(8)), Errno::kBadf);
  EXPECT_EQ(guest_.Read(kDir, 1).first, Errno::kIsdir);
  EXPECT_EQ(guest_.Write(kDir, "x").first, Errno::kIsdir);
  EXPECT_EQ(guest_.Seek(kDir, 0, kWhenceCur).first, Errno::kIsdir);
  EXPECT_EQ(guest_.Call("fd_tell", kDir, guest_.Allocate(8)), Errno::kIsdir);
  EXPECT_EQ(guest_.Call("fd_allocate", kDir, 0, 1), Errno::kIsdir);
  EXPECT_EQ(guest_.Call("fd_filestat_set_size", kDir, 0), Errno::kIsdir);
  EXPECT_EQ(guest_.Call("fd_advise", kDir, 0, 1, 0), Errno::kIsdir);
}

TEST_F(WasiFile, SizesAllocationAdviceAndSync) {
  const std::uint32_t fd = guest_.MustOpen(kDir, "f", oflags::kCreat, kReadWrite);
  ASSERT_EQ(guest_.Call("fd_filestat_set_size", fd, 100), Errno::kSuccess);
  EXPECT_EQ(guest_.Stat(fd).second.size, 100U);
  const Errno allocated = guest_.Call("fd_allocate", fd, 90, 20);
  if (allocated != Errno::kNotsup) {  // not every file system can
    EXPECT_EQ(allocated, Errno::kSuccess);
    EXPECT_EQ(guest_.Stat(fd).second.size, 110U);
  }
  EXPECT_EQ(guest_.Call("fd_allocate", fd, 0, ~0ULL), Errno::kFbig);
  EXPECT_EQ(guest_.Call("fd_filestat_set_size", fd, ~0ULL), Errno::kFbig);
  for (std::uint32_t advice = 0; advice < 6; ++advice) {
    EXPECT_EQ(guest_.Call("fd_advise", fd, 0, 10, advice), Errno::kSuccess);
  }
  EXPECT_EQ(guest_.Call("fd_advise", fd, 0, 10, 6), Errno::kInval);
  EXPECT_EQ(guest_.Call("fd_advise", fd, 0, 10, 256), Errno::kInval);
  EXPECT_EQ(guest_.Call("fd_sync", fd), Errno::kSuccess);
  EXPECT_EQ(guest_.Call("fd_datasync", fd), Errno::kSuccess);
  EXPECT_EQ(guest_.Call("fd_sync", kDir), Errno::kSuccess);
}

TEST_F(WasiFile, TimesOfAnOpenFile) {
  const std::uint32_t fd = guest_.MustOpen(kDir, "f", oflags::kCreat, kReadWrite);
  const std::uint64_t accessed = guest_.Stat(fd).second.atim_ns;
  constexpr std::uint64_t kTime = 1'000'000'000'000'000'123;
  ASSERT_EQ(guest_.Call("fd_filestat_set_times", fd, 5, kTime, fstflags::kMtim), Errno::kSuccess);
  EXPECT_EQ(guest_.Stat(fd).second.mtim_ns, kTime);
  EXPECT_EQ(guest_.Stat(fd).second.atim_ns, accessed);
  ASSERT_EQ(guest_.Call("fd_filestat_set_times", fd, 0, 0, fstflags::kMtimNow), Errno::kSuccess);
  EXPECT_GT(guest_.Stat(fd).second.mtim_ns, kTime);
  for (const int flags :
       {fstflags::kMtim | fstflags::kMtimNow, fstflags::kAtim | fstflags::kAtimNow, 16}) {
    EXPECT_EQ(guest_.Call("fd_filestat_set_times", fd, 0, 0, flags), Errno::kInval);
  }
  ASSERT_EQ(guest_.Call("fd_filestat_set_times", kDir, kTime, kTime, fstflags::kMtim),
            Errno::kSuccess);
  EXPECT_EQ(guest_.Stat(kDir).second.mtim_ns, kTime);
}

TEST_F(WasiFile, StatTellsTheKindAndTheLinks) {
  dir_.WriteFile("f", "12345");
  const std::uint32_t fd = guest_.MustOpen(kDir, "f", 0, kReadOnly);
  const auto [error, stat] = guest_.Stat(fd);
  EXPECT_EQ(error, Errno::kSuccess);
  EXPECT_EQ(stat.filetype, FileType::kRegularFile);
  EXPECT_EQ(stat.size, 5U);
  EXPECT_EQ(stat.nlink, 1U);
  EXPECT_EQ(guest_.Stat(kDir).second.filetype, FileType::kDirectory);
  EXPECT_EQ(guest_.Call("fd_filestat_get", fd, 0xFFFFFFF0), Errno::kFault);
  EXPECT_EQ(guest_.Call("fd_fdstat_get", fd, 0xFFFFFFF0), Errno::kFault);
}

TEST_F(WasiFile, RenumberReplacesAStream) {
  const std::uint32_t fd = guest_.MustOpen(kDir, "log", oflags::kCreat, kReadWrite);
  ASSERT_EQ(guest_.Call("fd_renumber", fd, 1), Errno::kSuccess);
  EXPECT_EQ(guest_.Write(1, "to the file").first, Errno::kSuccess);
  EXPECT_EQ(dir_.ReadFile("log"), "to the file");
  EXPECT_EQ(guest_.Facts().stdout_bytes, 0U);
  EXPECT_EQ(guest_.Call("fd_renumber", fd, 1), Errno::kBadf);
  EXPECT_EQ(guest_.Call("fd_renumber", 1, 99), Errno::kBadf);
}

TEST_F(WasiFile, APipeInADirectoryNeitherBlocksTheOpenNorOutlivesAStop) {
  const std::string path = (dir_.path() / "fifo").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(guest_.Open(kDir, "fifo", 0, rights::kFdWrite).first, Errno::kNxio);
  const std::uint32_t fd = guest_.MustOpen(kDir, "fifo", 0, kReadOnly);
  EXPECT_EQ(guest_.StatDescriptor(fd).filetype, FileType::kUnknown);
  EXPECT_EQ(guest_.Read(fd, 4).second, "") << "no writer: the end";
  const UniqueFd writer(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(writer.valid());
  ASSERT_EQ(write(writer.get(), "abc", 3), 3);
  EXPECT_EQ(guest_.Read(fd, 4).second, "abc");
  EXPECT_EQ(guest_.Seek(fd, 0, kWhenceCur).first, Errno::kSpipe);
  ASSERT_EQ(guest_.Call("fd_fdstat_set_flags", fd, fdflags::kNonblock), Errno::kSuccess);
  EXPECT_EQ(guest_.Read(fd, 4).first, Errno::kAgain);
  ASSERT_EQ(guest_.Call("fd_fdstat_set_flags", fd, 0), Errno::kSuccess);
  const std::uint32_t list = guest_.OneBuffer(guest_.Allocate(4), 4);
  const std::uint32_t count = guest_.Allocate(4);
  const std::jthread reader(
      [&] { EXPECT_EQ(guest_.CallAny("fd_read", fd, list, 1, count).first, Control::kStopped); });
  guest_.stop().Signal();
}

TEST_F(WasiFile, AClosedFileStaysUsableForACallInProgress) {
  const std::string path = (dir_.path() / "fifo").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::uint32_t fd = guest_.MustOpen(kDir, "fifo", 0, kReadOnly);
  const UniqueFd writer(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::uint32_t list = guest_.OneBuffer(guest_.Allocate(4), 4);
  const std::uint32_t count = guest_.Allocate(4);
  {
    const std::jthread reader([&] {
      const auto [control, error] = guest_.CallAny("fd_read", fd, list, 1, count);
      EXPECT_TRUE(error == Errno::kSuccess || error == Errno::kBadf);  // whichever came first
    });
    EXPECT_EQ(guest_.Call("fd_close", fd), Errno::kSuccess);
    EXPECT_LE(write(writer.get(), "abc", 3), 3);
  }
}

}  // namespace
}  // namespace bulkhead::wasi
