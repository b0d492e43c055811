#include "codecache/store.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "codecache/directory.h"
#include "codecache/testing.h"

namespace bulkhead::codecache {
namespace {

class StoreTest : public testing::Test {
 protected:
  Store Open(std::uint64_t bytes_max = 1ULL << 30, StoreHooks hooks = {}) const {
    auto store = Store::Open({.directory = path_, .bytes_max = bytes_max}, std::move(hooks));
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
  }

  std::string EntryPath(std::string_view module) const {
    return path_ + "/" + KeyFor(module).Text();
  }

  // As if the entry had been used last so long ago.
  void Age(std::string_view module, std::int64_t seconds) const {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    const timespec times[2] = {{0, UTIME_OMIT}, {now.tv_sec - seconds, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, EntryPath(module).c_str(), times, 0), 0);
  }

  std::int64_t UsedAt(std::string_view module) const {
    struct stat status{};
    EXPECT_EQ(stat(EntryPath(module).c_str(), &status), 0);
    return status.st_mtim.tv_sec;
  }

  void ExpectHit(const Store& store, std::string_view module, std::string_view content) const {
    const Lookup found = store.Find(KeyFor(module));
    ASSERT_TRUE(found.code) << found.problem;
    EXPECT_EQ(ContentOf(*found.code), content);
    EXPECT_FALSE(found.corrupt);
    EXPECT_EQ(found.problem, "");
  }

  void ExpectMiss(const Store& store, std::string_view module) const {
    const Lookup found = store.Find(KeyFor(module));
    EXPECT_FALSE(found.code);
    EXPECT_FALSE(found.corrupt);
    EXPECT_EQ(found.problem, "");
  }

  // Makes `spoil` have the entry's name; Find removes it, Put replaces it.
  void ExpectReplaced(const std::function<void(const std::string&)>& spoil) const {
    const Store store = Open();
    ASSERT_TRUE(store.Put(KeyFor("m"), CodeOf("code")));
    ASSERT_EQ(unlink(EntryPath("m").c_str()), 0);
    spoil(EntryPath("m"));
    const Lookup found = store.Find(KeyFor("m"));
    EXPECT_FALSE(found.code);
    EXPECT_TRUE(found.corrupt);
    EXPECT_NE(found.problem.find("it was removed"), std::string::npos) << found.problem;
    ExpectMiss(store, "m");
    ASSERT_TRUE(store.Put(KeyFor("m"), CodeOf("code")));
    ExpectHit(store, "m", "code");
    ASSERT_EQ(unlink(EntryPath("m").c_str()), 0);
  }

  const TempDir dir_;
  const std::string path_ = dir_ / "parent/cache";
};

TEST_F(StoreTest, WhatWasPutIsFound) {
  const Store store = Open();
  ExpectMiss(store, "m");
  const std::string content = LongContent();
  ASSERT_TRUE(store.Put(KeyFor("m"), CodeOf(content)));
  ExpectHit(store, "m", content);
  ExpectMiss(store, "another");
  ExpectHit(Open(), "m", content);
  ASSERT_TRUE(store.Put(KeyFor("m"), CodeOf("newer")));
  ExpectHit(store, "m", "newer");
  EXPECT_EQ(NamesOf(path_), std::vector<std::string>{KeyFor("m").Text()});
  store.Remove(KeyFor("m"));
  ExpectMiss(store, "m");
}

TEST_F(StoreTest, CodeMayLieAnywhereInItsFile) {
  const Store store = Open();
  Code code = CodeOf("before code after");
  code.offset = 7;
  code.bytes = 4;
  ASSERT_TRUE(store.Put(KeyFor("m"), code));
  ExpectHit(store, "m", "code");
}

TEST_F(StoreTest, DirectoryIsMadeForThisUserAlone) {
  Open();
  for (const std::string& made : {dir_ / "parent", path_}) {
    struct stat status{};
    ASSERT_EQ(stat(made.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U) << made;
  }
  const Store store = Open();
  ASSERT_TRUE(store.Put(KeyFor("m"), CodeOf("code")));
  struct stat status{};
  ASSERT_EQ(stat(EntryPath("m").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(StoreTest, ForeignDirectoriesAreRefused) {
  Open();
  ASSERT_EQ(chmod(path_.c_str(), 0720), 0);
  auto store = Store::Open({.directory = path_});
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(store.error().message.find("chmod go-w '" + path_ + "'"), std::string::npos)
      << store.error().message;
  ASSERT_EQ(chmod(path_.c_str(), 0755), 0);
  EXPECT_TRUE(Store::Open({.directory = path_}));
  if (geteuid() != 0) {
    GTEST_SKIP() << "giving a directory away needs root";
  }
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  store = Store::Open({.directory = path_});
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("belongs to user 12345"), std::string::npos);
}

TEST_F(StoreTest, UnusablePathsAreNamed) {
  WriteFile(dir_ / "file", "x");
  for (const std::string& path : {dir_ / "file", dir_ / "file/cache", std::string("/proc/cache")}) {
    const auto store = Store::Open({.directory = path});
    ASSERT_FALSE(store);
    EXPECT_NE(store.error().message.find("code cache"), std::string::npos);
  }
  EXPECT_EQ(Store::Open({.directory = ""}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Store::Open({.directory = path_, .bytes_max = 0}).error().code,
            ErrorCode::kInvalidArgument);
}

TEST_F(StoreTest, WhatIsNoFileIsReplaced) {
  WriteFile(dir_ / "elsewhere", "x");
  ExpectReplaced([&](const std::string& path) {
    ASSERT_EQ(symlink((dir_ / "elsewhere").c_str(), path.c_str()), 0);
  });
  EXPECT_EQ(ReadFile(dir_ / "elsewhere"), "x");
  ExpectReplaced([](const std::string& path) { ASSERT_EQ(symlink("nowhere", path.c_str()), 0); });
  ExpectReplaced([](const std::string& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); });
  ExpectReplaced([](const std::string& path) { ASSERT_EQ(mkdir(path.c_str(), 0700), 0); });
  ExpectReplaced([](const std::string& path) { WriteFile(path, ""); });
  ExpectReplaced([](const std::string& path) { WriteFile(path, std::string(5000, 'x')); });
}

TEST_F(StoreTest, ADirectoryThatIsInTheWayIsReported) {
  const Store store = Open();
  ASSERT_EQ(mkdir(EntryPath("m").c_str(), 0700), 0);
  WriteFile(EntryPath("m") + "/file", "x");
  const Lookup found = store.Find(KeyFor("m"));
  EXPECT_TRUE(found.corrupt);
  EXPECT_NE(found.problem.find("could not be removed"), std::string::npos) << found.problem;
  const Status put = store.Put(KeyFor("m"), CodeOf("code"));
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().sys_errno, EISDIR);
  EXPECT_EQ(NamesOf(path_), std::vector<std::string>{KeyFor("m").Text()});
}

TEST_F(StoreTest, WhatIsInUseOutlivesItsEntry) {
  const Store store = Open();
  ASSERT_TRUE(store.Put(KeyFor("m"), CodeOf("code")));
  const Lookup found = store.Find(KeyFor("m"));
  ASSERT_TRUE(store.Prune(0));
  EXPECT_EQ(NamesOf(path_), std::vector<std::string>());
  ASSERT_TRUE(found.code);
  EXPECT_EQ(ContentOf(*found.code), "code");
}

TEST_F(StoreTest, TheLeastUsedGoFirst) {
  const std::string content(1000, 'c');
  const std::uint64_t entry_bytes = kHeaderBytes + content.size();
  const Store store = Open(3 * entry_bytes);
  for (const char* module : {"a", "b", "c"}) {
    ASSERT_TRUE(store.Put(KeyFor(module), CodeOf(content)));
  }
  Age("a", 300);
  Age("b", 400);
  Age("c", 500);
  ExpectHit(store, "b", content);  // used now
  EXPECT_EQ(store.Stat()->entries, 3U);
  ASSERT_TRUE(store.Put(KeyFor("d"), CodeOf(content)));
  ExpectMiss(store, "c");
  ASSERT_TRUE(store.Put(KeyFor("e"), CodeOf(content)));
  ExpectMiss(store, "a");
  for (const char* module : {"b", "d", "e"}) {
    ExpectHit(store, module, content);
  }
  EXPECT_EQ(store.Stat()->bytes, 3 * entry_bytes);
  const auto pruned = store.Prune(entry_bytes);
  ASSERT_TRUE(pruned);
  EXPECT_EQ(pruned->entries, 1U);
  EXPECT_EQ(pruned->removed, 2U);
  EXPECT_EQ(pruned->removed_bytes, 2 * entry_bytes);
  EXPECT_EQ(pruned->problems, std::vector<std::string>());
}

// Whatever the wall clock does: an entry from the future is no reason to throw away a new one.
TEST_F(StoreTest, TheNewestStaysWhateverTheClockSays) {
  const std::string content(1000, 'c');
  const Store store = Open(kHeaderBytes + content.size());
  ASSERT_TRUE(store.Put(KeyFor("a"), CodeOf(content)));
  Age("a", -100'000);
  ASSERT_TRUE(store.Put(KeyFor("b"), CodeOf(content)));
  ExpectMiss(store, "a");
  ExpectHit(store, "b", content);
}

TEST_F(StoreTest, UseIsNoted) {
  const Store store = Open();
  ASSERT_TRUE(store.Put(KeyFor("m"), CodeOf("code")));
  const std::int64_t made = UsedAt("m");
  for (const std::int64_t age : {std::int64_t{1000}, std::int64_t{-1000}}) {
    Age("m", age);
    ExpectHit(store, "m", "code");
    EXPECT_LT(std::abs(UsedAt("m") - made), 500) << age;
  }
}

TEST_F(StoreTest, WhatFitsIntoNoCacheIsNotStored) {
  const Store store = Open(kHeaderBytes + 4);
  EXPECT_TRUE(store.Put(KeyFor("a"), CodeOf("1234")));
  const Status put = store.Put(KeyFor("b"), CodeOf("12345"));
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kResourceExhausted);
  ExpectHit(store, "a", "1234");
}

TEST_F(StoreTest, VerifyRemovesWhatIsNotWholeAndNothingElse) {
  const Store store = Open();
  for (const char* module : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(store.Put(KeyFor(module), CodeOf(LongContent())));
  }
  ASSERT_EQ(truncate(EntryPath("b").c_str(), 1000), 0);
  ASSERT_EQ(rename(EntryPath("c").c_str(), EntryPath("x").c_str()), 0);  // another's name
  WriteFile(path_ + "/readme", "not ours");
  const auto sweep = store.Verify();
  ASSERT_TRUE(sweep);
  EXPECT_EQ(sweep->entries, 2U);
  EXPECT_EQ(sweep->bytes, 2 * (kHeaderBytes + LongContent().size()));
  EXPECT_EQ(sweep->removed, 2U);
  ASSERT_EQ(sweep->problems.size(), 2U);
  EXPECT_NE(sweep->problems[0].find("it was removed"), std::string::npos) << sweep->problems[0];
  std::vector<std::string> left{KeyFor("a").Text(), KeyFor("d").Text(), "readme"};
  std::sort(left.begin(), left.end());
  EXPECT_EQ(NamesOf(path_), left);
}

TEST_F(StoreTest, NewFilesOfTheLivingStayThoseOfTheDeadGo) {
  const Store store = Open();
  WriteFile(path_ + "/new-0123456789abcdef", "left by a writer that died");
  const UniqueFd directory(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto living = NewFile::Create(directory.borrow());
  ASSERT_TRUE(living);
  ASSERT_TRUE(store.Put(KeyFor("m"), CodeOf("code")));
  const std::vector<std::string> names = NamesOf(path_);
  ASSERT_EQ(names.size(), 2U);
  EXPECT_EQ(names[0], KeyFor("m").Text());
  EXPECT_TRUE(IsNewFileName(names[1]) && names[1] != "new-0123456789abcdef") << names[1];
  EXPECT_TRUE(living->RenameTo(KeyFor("n").Text()));
  EXPECT_EQ(NamesOf(path_).size(), 2U);
}

// Nobody who has to run waits for a sweep of somebody else, not even of one that hangs.
TEST_F(StoreTest, PuttingDoesNotWaitForASweep) {
  const Store store = Open(kHeaderBytes + 4);
  const UniqueFd directory(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  {
    const auto lock = LockForSweep(directory.borrow());
    ASSERT_TRUE(lock);
    ASSERT_TRUE(store.Put(KeyFor("a"), CodeOf("code")));
    ASSERT_TRUE(store.Put(KeyFor("b"), CodeOf("code")));
    ExpectHit(store, "a", "code");
  }
  ASSERT_TRUE(store.Put(KeyFor("c"), CodeOf("code")));
  EXPECT_EQ(NamesOf(path_), std::vector<std::string>{KeyFor("c").Text()});
}

TEST_F(StoreTest, ThreadsShareACache) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 30;
  const Store store = Open();
  const std::string content = LongContent();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const Lookup found = store.Find(KeyFor("m"));
        wrong += found.code ? static_cast<int>(ContentOf(*found.code) != content)
                            : static_cast<int>(!found.problem.empty());
        wrong += static_cast<int>(!store.Put(KeyFor("m"), CodeOf(content)));
        if (t == 0 && i % 10 == 0) {
          wrong += static_cast<int>(!store.Prune(0));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(NamesOf(path_), std::vector<std::string>{KeyFor("m").Text()});
  ExpectHit(store, "m", content);
}

// Runs `work` in a process of its own, which it may kill; the wait status.
int InChild(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST_F(StoreTest, AKilledWriterLeavesNothingHalf) {
  const std::string content = LongContent();
  for (const PutStep step :
       {PutStep::kCreated, PutStep::kWritten, PutStep::kRenamed, PutStep::kSwept}) {
    for (const bool replaces : {false, true}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(step) << " replaces " << replaces);
      const Store store = Open();
      ASSERT_TRUE(store.Prune(0));
      if (replaces) {
        ASSERT_TRUE(store.Put(KeyFor("m"), CodeOf("old")));
      }
      const int status = InChild([&] {
        const Store dying = Open(1ULL << 30, {[step](PutStep reached) {
                                   if (reached == step) {
                                     raise(SIGKILL);
                                   }
                                 }});
        (void)dying.Put(KeyFor("m"), CodeOf(content));
      });
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
      if (step == PutStep::kRenamed || step == PutStep::kSwept) {
        ExpectHit(store, "m", content);
      } else if (replaces) {
        ExpectHit(store, "m", "old");
      } else {
        ExpectMiss(store, "m");
      }
      ASSERT_TRUE(store.Put(KeyFor("n"), CodeOf("next")));
      for (const std::string& name : NamesOf(path_)) {
        EXPECT_TRUE(IsKeyText(name)) << name;
      }
    }
  }
}

// A moment that no hook names: in the middle of writing.
TEST_F(StoreTest, AWriterKilledAtAnyMomentLeavesNothingHalf) {
  const std::string content = LongContent();
  const Store store = Open();
  for (int round = 0; round < 20; ++round) {
    int begun[2] = {-1, -1};
    ASSERT_EQ(pipe2(begun, O_CLOEXEC), 0);
    const UniqueFd begun_out(begun[0]);
    UniqueFd begun_in(begun[1]);
    const pid_t child = fork();
    if (child == 0) {
      const Store own = Open(1ULL << 30, {[&](PutStep) { (void)!write(begun_in.get(), "x", 1); }});
      for (;;) {
        (void)own.Put(KeyFor("m"), CodeOf(content));
      }
    }
    begun_in.Reset();
    char byte = 0;
    ASSERT_EQ(read(begun_out.get(), &byte, 1), 1);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const Lookup found = store.Find(KeyFor("m"));
    EXPECT_FALSE(found.corrupt) << found.problem;
    EXPECT_TRUE(!found.code || ContentOf(*found.code) == content);
    ASSERT_TRUE(store.Prune(0));
    EXPECT_EQ(NamesOf(path_), std::vector<std::string>());
  }
}

TEST_F(StoreTest, ProcessesShareACache) {
  constexpr int kProcesses = 6;
  const std::string content = LongContent();
  Open();
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      const Store own = Open();
      bool fine = true;
      for (int i = 0; i < 20; ++i) {
        const Lookup found = own.Find(KeyFor("m"));
        fine = fine && (found.code ? ContentOf(*found.code) == content : found.problem.empty());
        fine = fine && own.Put(KeyFor("m"), CodeOf(content)).has_value();
      }
      _exit(fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(NamesOf(path_), std::vector<std::string>{KeyFor("m").Text()});
  ExpectHit(Open(), "m", content);
}

constexpr int kChildSkips = 77;
constexpr int kChildFailed = 1;

TEST_F(StoreTest, AFullDiskChangesNothing) {
  Open();
  const int status = InChild([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) {
      _exit(kChildSkips);
    }
    const Store store = Open();
    const bool small = store.Put(KeyFor("a"), CodeOf("small")).has_value();
    const Status large = store.Put(KeyFor("m"), CodeOf(LongContent()));
    const bool refused = !large && large.error().sys_errno == ENOSPC;
    const bool clean = NamesOf(path_) == std::vector<std::string>{KeyFor("a").Text()};
    const bool there = store.Find(KeyFor("a")).code.has_value();
    _exit(small && refused && clean && there ? 0 : kChildFailed);
  });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kChildSkips) {
    GTEST_SKIP() << "mounting a tmpfs needs CAP_SYS_ADMIN";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(StoreTest, AReadOnlyDiskIsReadAllTheSame) {
  ASSERT_TRUE(Open().Put(KeyFor("m"), CodeOf("code")));
  Age("m", 1000);
  const int status = InChild([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(path_.c_str(), path_.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        mount(nullptr, path_.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
      _exit(kChildSkips);
    }
    const Store store = Open();
    const bool found = store.Find(KeyFor("m")).code.has_value();
    const Status put = store.Put(KeyFor("n"), CodeOf("code"));
    const bool refused = !put && put.error().sys_errno == EROFS;
    _exit(found && refused && !store.Prune(0) && store.Stat() ? 0 : kChildFailed);
  });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kChildSkips) {
    GTEST_SKIP() << "mounting needs CAP_SYS_ADMIN";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(StoreTest, ALimitOfFileSizesDoesNotKillTheHost) {
  Open();
  const int status = InChild([&] {
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Store store = Open();
    const bool small = store.Put(KeyFor("a"), CodeOf("small")).has_value();
    const Code code{UniqueFd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), 0, 10'000};
    const Status large = store.Put(KeyFor("m"), code);
    _exit(small && !large && large.error().code == ErrorCode::kResourceExhausted ? 0
                                                                                 : kChildFailed);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(StoreTest, PublicHandleDoesAllThat) {
  const auto cache = CodeCache::Open({.directory = path_, .bytes_max = 1000});
  ASSERT_TRUE(cache);
  EXPECT_EQ((*cache)->directory(), path_);
  ASSERT_TRUE((*cache)->impl().store.Put(KeyFor("m"), CodeOf("code")));
  EXPECT_EQ((*cache)->Stat()->entries, 1U);
  EXPECT_EQ((*cache)->Stat()->bytes_max, 1000U);
  EXPECT_EQ((*cache)->Verify()->entries, 1U);
  EXPECT_EQ((*cache)->Prune(0)->removed, 1U);
  EXPECT_EQ((*cache)->Stat()->entries, 0U);
}

}  // namespace
}  // namespace bulkhead::codecache
