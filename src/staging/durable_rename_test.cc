#include "staging/durable_rename.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "staging/file_digest.h"
#include "staging/staging_testing.h"

namespace bulkhead::staging {
namespace {

TEST(DurableRename, BothWaysOfNotReplacingKeepAnExistingDestination) {
  const TempDir dir;
  const UniqueFd handle = OpenDirectory(dir.path());
  WriteFile(dir / "from", "new");
  WriteFile(dir / "to", "old");
  for (const auto& publish : {RenameNoReplace, LinkNoReplace}) {
    const Status refused = publish({handle.borrow(), "from"}, {handle.borrow(), "to"});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().sys_errno, EEXIST);
    EXPECT_EQ(refused.error().code, ErrorCode::kOutput);
    EXPECT_EQ(ReadFile(dir / "to"), "old");
  }
}

TEST(DurableRename, BothWaysOfNotReplacingCreateAMissingDestination) {
  for (const auto& publish : {RenameNoReplace, LinkNoReplace}) {
    const TempDir dir;
    const UniqueFd handle = OpenDirectory(dir.path());
    WriteFile(dir / "from", "new");
    EXPECT_TRUE(publish({handle.borrow(), "from"}, {handle.borrow(), "to"}).has_value());
    EXPECT_EQ(ReadFile(dir / "to"), "new");
  }
}

TEST(DurableRename, SyncDirectoryTakesAPathHandle) {
  const TempDir dir;
  const UniqueFd handle(open(dir.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_TRUE(SyncDirectory(handle.borrow()).has_value());
}

TEST(FileDigest, CoversExactlyTheBytesAskedFor) {
  const TempDir dir;
  // More than one read, and not a whole number of them.
  const std::string text(700'001, 'a');
  WriteFile(dir / "file", text + "more");
  const UniqueFd file(open((dir / "file").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(HashFile(file.borrow(), text.size()).value_or("failed"),
            "d4ec88d3128f383e34c8a1943ee73685ef6b1f44fc8f20688d60bb8ceb651cf0");
  EXPECT_EQ(HashFile(file.borrow(), 3).value_or("failed"),
            "9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0");
  EXPECT_EQ(lseek(file.get(), 0, SEEK_CUR), 0);
}

TEST(FileDigest, ShorterFileIsAnError) {
  const TempDir dir;
  WriteFile(dir / "file", "abc");
  const UniqueFd file(open((dir / "file").c_str(), O_RDONLY | O_CLOEXEC));
  const Result<std::string> digest = HashFile(file.borrow(), 4);
  ASSERT_FALSE(digest.has_value());
  EXPECT_EQ(digest.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace bulkhead::staging
