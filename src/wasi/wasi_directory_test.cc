#include <sys/stat.h>

#include <cstring>
#include <set>

#include "wasi/test_guest.h"

namespace bulkhead::wasi {
namespace {

constexpr std::uint32_t kDir = Guest::kFirstPreopen;

// The granted directory lies in an outer one with a secret beside it.
struct OuterDir : TempDir {
  OuterDir() {
    std::filesystem::create_directory(path() / "in");
    WriteFile("secret", "secret");
  }
};

class WasiDirectory : public testing::Test {
 protected:
  WasiConfig Grant(bool writable) {
    WasiConfig config;
    config.preopens.push_back(
        {UniqueFd(open(inside("").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), "/data", writable});
    return config;
  }

  std::filesystem::path inside(const std::string& name) const {
    return outer_.path() / "in" / name;
  }

  void WriteInside(const std::string& name, std::string_view content) {
    outer_.WriteFile("in/" + name, content);
  }

  bool Exists(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(inside(name)));
  }

  OuterDir outer_;
  Guest guest_{Grant(true)};
};

TEST_F(WasiDirectory, PreopensAreFoundByName) {
  const std::uint32_t out = guest_.Allocate(8);
  ASSERT_EQ(guest_.Call("fd_prestat_get", kDir, out), Errno::kSuccess);
  EXPECT_EQ(guest_.Load<Prestat>(out).tag, 0U);
  EXPECT_EQ(guest_.Load<Prestat>(out).name_bytes, 5U);
  const std::uint32_t name = guest_.Allocate(8);
  ASSERT_EQ(guest_.Call("fd_prestat_dir_name", kDir, name, 6), Errno::kSuccess);
  EXPECT_EQ(guest_.Text(name, 6), std::string("/data\0", 6));
  EXPECT_EQ(guest_.Call("fd_prestat_dir_name", kDir, name, 4), Errno::kNametoolong);
  EXPECT_EQ(guest_.Call("fd_prestat_get", kDir + 1, out), Errno::kBadf);
  const std::uint32_t sub = guest_.MustOpen(kDir, ".", oflags::kDirectory, rights::kDirectory);
  EXPECT_EQ(guest_.Call("fd_prestat_get", sub, out), Errno::kBadf);
  const Fdstat stat = guest_.StatDescriptor(kDir);
  EXPECT_EQ(stat.filetype, FileType::kDirectory);
  EXPECT_EQ(stat.rights_base, rights::kDirectory);
  EXPECT_EQ(stat.rights_inheriting, rights::kAll);
  EXPECT_EQ(guest_.Call("fd_fdstat_set_flags", sub, fdflags::kNonblock), Errno::kSuccess);
}

TEST_F(WasiDirectory, MakesMovesAndRemoves) {
  EXPECT_EQ(guest_.OnPath("path_create_directory", kDir, "a"), Errno::kSuccess);
  EXPECT_EQ(guest_.OnPath("path_create_directory", kDir, "a/b/"), Errno::kSuccess);
  EXPECT_EQ(guest_.OnPath("path_create_directory", kDir, "a"), Errno::kExist);
  EXPECT_EQ(guest_.OnPath("path_create_directory", kDir, "x/y"), Errno::kNoent);
  EXPECT_EQ(guest_.OnPath("path_remove_directory", kDir, "a"), Errno::kNotempty);
  EXPECT_EQ(guest_.Rename(kDir, "a/b/", kDir, "c/"), Errno::kSuccess);
  EXPECT_EQ(guest_.OnPath("path_remove_directory", kDir, "a/"), Errno::kSuccess);
  WriteInside("f", "1");
  EXPECT_EQ(guest_.Rename(kDir, "f", kDir, "c/g"), Errno::kSuccess);
  EXPECT_EQ(guest_.Rename(kDir, "f", kDir, "h"), Errno::kNoent);
  EXPECT_EQ(guest_.OnPath("path_remove_directory", kDir, "c/g"), Errno::kNotdir);
  EXPECT_EQ(guest_.OnPath("path_unlink_file", kDir, "c"), Errno::kIsdir);
  EXPECT_EQ(guest_.OnPath("path_unlink_file", kDir, "c/g/"), Errno::kNotdir);
  EXPECT_EQ(guest_.OnPath("path_unlink_file", kDir, "c/g"), Errno::kSuccess);
  EXPECT_FALSE(Exists("c/g"));
}

TEST_F(WasiDirectory, DotsAreNoEntriesToChange) {
  std::filesystem::create_directory(inside("d"));
  for (const char* path : {".", "d/.", "d/..", "./"}) {
    EXPECT_EQ(guest_.OnPath("path_create_directory", kDir, path), Errno::kExist) << path;
    EXPECT_EQ(guest_.OnPath("path_remove_directory", kDir, path), Errno::kInval) << path;
    EXPECT_EQ(guest_.OnPath("path_unlink_file", kDir, path), Errno::kIsdir) << path;
    EXPECT_EQ(guest_.Rename(kDir, path, kDir, "x"), Errno::kBusy) << path;
    EXPECT_EQ(guest_.Symlink("x", kDir, path), Errno::kExist) << path;
    EXPECT_EQ(guest_.Link(kDir, path, kDir, "x"), Errno::kPerm) << path;
  }
  EXPECT_EQ(guest_.OnPath("path_remove_directory", kDir, "missing/.."), Errno::kNoent);
  for (const char* path : {"..", "d/../..", "../in", "../secret", "../../etc/passwd"}) {
    EXPECT_EQ(guest_.OnPath("path_create_directory", kDir, path), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.OnPath("path_remove_directory", kDir, path), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.OnPath("path_unlink_file", kDir, path), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Rename(kDir, path, kDir, "x"), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Rename(kDir, "d", kDir, path), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Symlink("x", kDir, path), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Link(kDir, path, kDir, "x"), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Open(kDir, path, 0, kReadOnly).first, Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.StatPath(kDir, path).first, Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.ReadLink(kDir, path).first, Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Call("path_filestat_set_times", kDir, 1, guest_.Store(path), strlen(path), 0,
                          0, fstflags::kMtimNow),
              Errno::kNotcapable)
        << path;
  }
}

TEST_F(WasiDirectory, PathsAreTextAndRelative) {
  const auto stat = [&](std::string_view path) { return guest_.StatPath(kDir, path).first; };
  EXPECT_EQ(stat(""), Errno::kNoent);
  EXPECT_EQ(stat("/etc"), Errno::kNotcapable);
  EXPECT_EQ(stat(std::string_view("a\0b", 3)), Errno::kInval);
  EXPECT_EQ(stat("a\xFF"), Errno::kIlseq);
  EXPECT_EQ(stat("\xED\xA0\x80"), Errno::kIlseq);  // a surrogate
  EXPECT_EQ(stat(std::string(4096, 'x')), Errno::kNametoolong);
  EXPECT_EQ(stat(std::string(256, 'x')), Errno::kNametoolong);
  EXPECT_EQ(stat("\xC3\xA4"), Errno::kNoent);
  EXPECT_EQ(guest_.Call("path_filestat_get", kDir, 0, 0xFFFFFFF0, 100, guest_.Allocate(64)),
            Errno::kFault);
}

TEST_F(WasiDirectory, LinksThatLeadOutAreNotFollowed) {
  std::filesystem::create_symlink(outer_.path() / "secret", inside("absolute"));
  std::filesystem::create_symlink("../secret", inside("relative"));
  std::filesystem::create_directory_symlink("..", inside("parent"));
  std::filesystem::create_symlink("relative", inside("chain"));
  std::filesystem::create_directory(inside("d"));
  std::filesystem::create_directory_symlink("../..", inside("d/up"));
  for (const char* path :
       {"absolute", "relative", "chain", "parent/secret", "d/up/secret", "parent/", "d/up"}) {
    EXPECT_EQ(guest_.Open(kDir, path, 0, kReadOnly).first, Errno::kNotcapable) << path;
    if (!std::string_view(path).ends_with('/')) {  // a file is never created there
      EXPECT_EQ(guest_.Open(kDir, path, oflags::kCreat, kReadWrite).first, Errno::kNotcapable)
          << path;
    }
    EXPECT_EQ(guest_.StatPath(kDir, path).first, Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Call("path_filestat_set_times", kDir, 1, guest_.Store(path), strlen(path), 0,
                          0, fstflags::kMtimNow),
              Errno::kNotcapable)
        << path;
  }
  for (const char* path : {"parent/secret", "d/up/secret"}) {
    EXPECT_EQ(guest_.OnPath("path_unlink_file", kDir, path), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Rename(kDir, path, kDir, "got"), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Rename(kDir, "d", kDir, path), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.Link(kDir, path, kDir, "got"), Errno::kNotcapable) << path;
    EXPECT_EQ(guest_.OnPath("path_create_directory", kDir, path), Errno::kNotcapable) << path;
  }
  // With a trailing slash some *at calls would follow the name itself.
  EXPECT_EQ(guest_.Link(kDir, "parent/", kDir, "got"), Errno::kNotcapable);
  EXPECT_EQ(guest_.ReadLink(kDir, "parent/").first, Errno::kNotcapable);
  EXPECT_EQ(guest_.OnPath("path_remove_directory", kDir, "parent/"), Errno::kNotdir);
  EXPECT_EQ(guest_.Symlink("x", kDir, "parent/"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Call("path_filestat_set_times", kDir, 0, guest_.Store("parent/"), 7, 0, 0,
                        fstflags::kMtimNow),
            Errno::kNotcapable);
  EXPECT_EQ(outer_.ReadFile("secret"), "secret");
}

TEST_F(WasiDirectory, LinksThatStayInsideAreFollowedWhenAsked) {
  WriteInside("target", "content");
  ASSERT_EQ(guest_.Symlink("target", kDir, "link"), Errno::kSuccess);
  ASSERT_EQ(guest_.Symlink("link", kDir, "chain"), Errno::kSuccess);
  EXPECT_EQ(guest_.Open(kDir, "chain", 0, kReadOnly, {0, 0}).first, Errno::kLoop);
  EXPECT_EQ(guest_.Read(guest_.MustOpen(kDir, "chain", 0, kReadOnly), 10).second, "content");
  EXPECT_EQ(guest_.StatPath(kDir, "link", false).second.filetype, FileType::kSymbolicLink);
  EXPECT_EQ(guest_.StatPath(kDir, "link", true).second.filetype, FileType::kRegularFile);
  ASSERT_EQ(guest_.Symlink("loop", kDir, "loop"), Errno::kSuccess);
  EXPECT_EQ(guest_.Open(kDir, "loop", 0, kReadOnly).first, Errno::kLoop);
  // An escaping link may be made: nobody follows it out.
  EXPECT_EQ(guest_.Symlink("../secret", kDir, "escape"), Errno::kSuccess);
  EXPECT_EQ(guest_.Open(kDir, "escape", 0, kReadOnly).first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Symlink("/etc/passwd", kDir, "abs"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Symlink("", kDir, "empty"), Errno::kNoent);
  EXPECT_EQ(guest_.Symlink("x", kDir, "target"), Errno::kExist);
  EXPECT_EQ(guest_.Symlink("x", kDir, "target/"), Errno::kNotdir);
  EXPECT_EQ(guest_.Symlink("x", kDir, "new/"), Errno::kNoent);
}

TEST_F(WasiDirectory, ReadsLinks) {
  ASSERT_EQ(guest_.Symlink("target", kDir, "link"), Errno::kSuccess);
  EXPECT_EQ(guest_.ReadLink(kDir, "link"), std::pair(Errno::kSuccess, std::string("target")));
  EXPECT_EQ(guest_.ReadLink(kDir, "link", 4).second, "targ");
  WriteInside("f", "");
  EXPECT_EQ(guest_.ReadLink(kDir, "f").first, Errno::kInval);
  EXPECT_EQ(guest_.ReadLink(kDir, "none").first, Errno::kNoent);
  std::filesystem::create_symlink("a\xFF", inside("odd"));
  EXPECT_EQ(guest_.ReadLink(kDir, "odd").first, Errno::kIlseq);
}

TEST_F(WasiDirectory, HardLinks) {
  WriteInside("f", "content");
  EXPECT_EQ(guest_.Link(kDir, "f", kDir, "g"), Errno::kSuccess);
  EXPECT_EQ(guest_.StatPath(kDir, "g").second.nlink, 2U);
  EXPECT_EQ(guest_.Link(kDir, "f", kDir, "g"), Errno::kExist);
  EXPECT_EQ(guest_.Link(kDir, "f", kDir, "h/"), Errno::kNoent);
  EXPECT_EQ(guest_.Link(kDir, "f/", kDir, "h"), Errno::kNotdir);
  EXPECT_EQ(guest_.Call("path_link", kDir, 1, guest_.Store("f"), 1, kDir, guest_.Store("h"), 1),
            Errno::kInval);
  ASSERT_EQ(guest_.Symlink("f", kDir, "link"), Errno::kSuccess);
  EXPECT_EQ(guest_.Link(kDir, "link", kDir, "link2"), Errno::kSuccess);
  EXPECT_EQ(guest_.StatPath(kDir, "link2", false).second.filetype, FileType::kSymbolicLink);
}

TEST_F(WasiDirectory, TimesOfAPath) {
  WriteInside("f", "");
  ASSERT_EQ(guest_.Symlink("f", kDir, "link"), Errno::kSuccess);
  constexpr std::uint64_t kTime = 1'234'567'890'000'000'007;
  const auto set = [&](std::uint32_t lookup, std::uint64_t time) {
    return guest_.Call("path_filestat_set_times", kDir, lookup, guest_.Store("link"), 4, time, time,
                       fstflags::kAtim | fstflags::kMtim);
  };
  const std::uint64_t of_link = guest_.StatPath(kDir, "link", false).second.mtim_ns;
  // Not of the link itself.
  EXPECT_EQ(set(0, kTime), Errno::kNotsup);
  EXPECT_NE(guest_.StatPath(kDir, "f").second.mtim_ns, kTime);
  ASSERT_EQ(set(1, kTime), Errno::kSuccess);
  EXPECT_EQ(guest_.StatPath(kDir, "f").second.mtim_ns, kTime);
  EXPECT_EQ(guest_.StatPath(kDir, "link", false).second.mtim_ns, of_link);
}

TEST_F(WasiDirectory, TimesOfAFileThatCanOnlyBeWritten) {
  WriteInside("f", "");
  std::filesystem::permissions(inside("f"), std::filesystem::perms::owner_write);
  constexpr std::uint64_t kTime = 1'000'000'000;
  ASSERT_EQ(guest_.Call("path_filestat_set_times", kDir, 0, guest_.Store("f"), 1, kTime, kTime,
                        fstflags::kAtim | fstflags::kMtim),
            Errno::kSuccess);
  EXPECT_EQ(guest_.StatPath(kDir, "f").second.mtim_ns, kTime);
}

TEST_F(WasiDirectory, ListsEverythingThroughAnyBuffer) {
  std::set<std::string> expected = {".", ".."};
  for (int i = 0; i < 300; ++i) {
    const std::string name = "file-" + std::to_string(i);
    WriteInside(name, "");
    expected.insert(name);
  }
  WriteInside("odd\xFF", "");  // cannot be named by a guest, so it is not there
  for (const std::size_t bytes : {64U, 300U, 4096U, 1U << 20}) {
    std::set<std::string> names;
    for (const Guest::Entry& entry : guest_.List(kDir, bytes)) {
      EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    }
    EXPECT_EQ(names, expected) << bytes;
  }
}

TEST_F(WasiDirectory, EntriesCarryKindInodeAndCookie) {
  WriteInside("f", "");
  std::filesystem::create_directory(inside("d"));
  std::filesystem::create_symlink("f", inside("l"));
  const auto entries = guest_.List(kDir);
  ASSERT_EQ(entries.size(), 5U);
  for (const Guest::Entry& entry : entries) {
    if (entry.name == "f") {
      EXPECT_EQ(entry.dirent.filetype, FileType::kRegularFile);
      EXPECT_EQ(entry.dirent.ino, guest_.StatPath(kDir, "f").second.ino);
    } else if (entry.name == "l") {
      EXPECT_EQ(entry.dirent.filetype, FileType::kSymbolicLink);
    } else {
      EXPECT_EQ(entry.dirent.filetype, FileType::kDirectory);
    }
  }
  // A cookie continues where it came from, also after the directory changed.
  ASSERT_EQ(guest_.OnPath("path_create_directory", kDir, "later"), Errno::kSuccess);
  const std::uint32_t buffer = guest_.Allocate(4096);
  const std::uint32_t used = guest_.Allocate(4);
  ASSERT_EQ(guest_.Call("fd_readdir", kDir, buffer, 4096, entries[1].dirent.next, used),
            Errno::kSuccess);
  EXPECT_EQ(
      guest_.Text(buffer + static_cast<std::uint32_t>(sizeof(Dirent)), entries[2].name.size()),
      entries[2].name);
  EXPECT_EQ(guest_.Call("fd_readdir", kDir, buffer, 4096, ~0ULL, used), Errno::kInval);
  EXPECT_EQ(guest_.Call("fd_readdir", kDir, buffer, 0xFFFFFFFF, 0, used), Errno::kFault);
  EXPECT_EQ(guest_.Call("fd_readdir", kDir, buffer, 0, 0, used), Errno::kSuccess);
  EXPECT_EQ(guest_.Load<std::uint32_t>(used), 0U);
}

TEST_F(WasiDirectory, AReadOnlyGrantIsAReadOnlyMount) {
  WriteInside("f", "content");
  std::filesystem::create_directory(inside("d"));
  Guest guest(Grant(false));
  const std::uint32_t file = guest.MustOpen(kDir, "f", 0, kReadOnly);
  EXPECT_EQ(guest.Read(file, 10).second, "content");
  EXPECT_EQ(guest.List(kDir).size(), 4U);
  EXPECT_EQ(guest.Open(kDir, "f", 0, kReadWrite).first, Errno::kRofs);
  EXPECT_EQ(guest.Open(kDir, "f", oflags::kTrunc, kReadOnly).first, Errno::kRofs);
  EXPECT_EQ(guest.Open(kDir, "new", oflags::kCreat, kReadOnly).first, Errno::kRofs);
  EXPECT_EQ(guest.Open(kDir, "f", oflags::kCreat, kReadOnly).first, Errno::kSuccess);
  EXPECT_EQ(guest.Open(kDir, "f", oflags::kCreat | oflags::kExcl, kReadOnly).first, Errno::kExist);
  EXPECT_EQ(guest.OnPath("path_create_directory", kDir, "x"), Errno::kRofs);
  EXPECT_EQ(guest.OnPath("path_remove_directory", kDir, "d"), Errno::kRofs);
  EXPECT_EQ(guest.OnPath("path_unlink_file", kDir, "f"), Errno::kRofs);
  EXPECT_EQ(guest.Rename(kDir, "f", kDir, "g"), Errno::kRofs);
  EXPECT_EQ(guest.Link(kDir, "f", kDir, "g"), Errno::kRofs);
  EXPECT_EQ(guest.Symlink("f", kDir, "g"), Errno::kRofs);
  EXPECT_EQ(
      guest.Call("path_filestat_set_times", kDir, 1, guest.Store("f"), 1, 0, 0, fstflags::kMtimNow),
      Errno::kRofs);
  EXPECT_EQ(guest.Call("fd_filestat_set_times", file, 0, 0, fstflags::kMtimNow), Errno::kRofs);
  EXPECT_EQ(guest.Call("fd_filestat_set_times", kDir, 0, 0, fstflags::kMtimNow), Errno::kRofs);
  EXPECT_EQ(guest.Call("fd_filestat_set_size", file, 0), Errno::kNotcapable);
  const std::uint32_t sub = guest.MustOpen(kDir, "d", oflags::kDirectory, rights::kDirectory);
  EXPECT_EQ(guest.OnPath("path_create_directory", sub, "x"), Errno::kRofs);
  EXPECT_EQ(outer_.ReadFile("in/f"), "content");
}

TEST_F(WasiDirectory, NothingMovesFromAReadOnlyGrantToAWritableOne) {
  WriteInside("f", "content");
  TempDir other;
  WasiConfig config = Grant(false);
  config.preopens.push_back({other.Open(), "/rw", true});
  Guest guest(std::move(config));
  EXPECT_EQ(guest.Link(kDir, "f", kDir + 1, "f"), Errno::kRofs);
  EXPECT_EQ(guest.Rename(kDir, "f", kDir + 1, "f"), Errno::kRofs);
  EXPECT_EQ(guest.Rename(kDir + 1, "f", kDir, "f"), Errno::kRofs);
}

TEST_F(WasiDirectory, MissingRightsAreNotcapable) {
  const std::uint32_t sub = guest_.MustOpen(kDir, ".", oflags::kDirectory, 0);
  const std::uint32_t out = guest_.Allocate(64);
  EXPECT_EQ(guest_.OnPath("path_create_directory", sub, "x"), Errno::kNotcapable);
  EXPECT_EQ(guest_.OnPath("path_remove_directory", sub, "x"), Errno::kNotcapable);
  EXPECT_EQ(guest_.OnPath("path_unlink_file", sub, "x"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Rename(sub, "x", kDir, "y"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Rename(kDir, "x", sub, "y"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Link(sub, "x", kDir, "y"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Link(kDir, "x", sub, "y"), Errno::kNotcapable);
  EXPECT_EQ(guest_.Symlink("x", sub, "y"), Errno::kNotcapable);
  EXPECT_EQ(guest_.ReadLink(sub, "x").first, Errno::kNotcapable);
  EXPECT_EQ(guest_.StatPath(sub, "x").first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Open(sub, "x", 0, 0).first, Errno::kNotcapable);
  EXPECT_EQ(guest_.Call("fd_readdir", sub, out, 64, 0, out), Errno::kNotcapable);
  EXPECT_EQ(guest_.Stat(sub).first, Errno::kNotcapable);
  EXPECT_EQ(guest_.StatPath(99, "x").first, Errno::kBadf);
}

}  // namespace
}  // namespace bulkhead::wasi
