#include "staging/tree_removal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "staging/staging_testing.h"

namespace bulkhead::staging {
namespace {

// A chain of `levels` directories, one inside the other.
void MakeNested(const TempDir& dir, int levels) {
  std::string path = dir.path();
  for (int level = 0; level < levels; ++level) {
    path += "/d";
    MakeDirectory(path);
  }
}

TEST(TreeRemoval, DepthIsBounded) {
  const TempDir dir;
  const UniqueFd handle = OpenDirectory(dir.path());
  MakeNested(dir, kRemovalDepthMax);
  EXPECT_TRUE(RemoveContents(handle.borrow()).has_value());
  EXPECT_TRUE(EntriesOf(dir.path()).empty());
  MakeNested(dir, kRemovalDepthMax + 1);
  const Status refused = RemoveContents(handle.borrow());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutput);
}

TEST(TreeRemoval, EntryCountIsBoundedOverTheWholeTree) {
  const TempDir dir;
  const UniqueFd handle = OpenDirectory(dir.path());
  const auto fill = [&](std::size_t inner_files) {
    MakeDirectory(dir / "d");
    for (std::size_t i = 0; i < inner_files; ++i) {
      WriteFile(dir / ("d/" + std::to_string(i)), "");
    }
  };
  fill(kRemovalEntriesMax - 1);
  EXPECT_TRUE(RemoveContents(handle.borrow()).has_value());
  EXPECT_TRUE(EntriesOf(dir.path()).empty());
  fill(kRemovalEntriesMax);
  EXPECT_FALSE(RemoveContents(handle.borrow()).has_value());
}

TEST(TreeRemoval, MountedFileSystemInsideIsNotEntered) {
  const TempDir dir;
  const SmallFileSystem small(dir / "small", "size=64k");
  if (!small.mounted()) {
    GTEST_SKIP() << SmallFileSystem::kNeeds;
  }
  WriteFile(dir / "small/kept", "kept");
  // Opened in the new mount namespace: an older handle does not lead into the mount.
  const UniqueFd handle = OpenDirectory(dir.path());
  EXPECT_FALSE(RemoveContents(handle.borrow()).has_value());
  EXPECT_EQ(ReadFile(dir / "small/kept"), "kept");
}

TEST(TreeRemoval, ListNamesCutsAtTheBoundAndFilters) {
  const TempDir dir;
  const UniqueFd handle = OpenDirectory(dir.path());
  for (const std::string_view name : {"a1", "a2", "b1"}) {
    WriteFile(dir / name, "");
  }
  Result<Listing> all = ListNames(handle.borrow(), "a", 3);
  ASSERT_TRUE(all.has_value());
  std::sort(all->names.begin(), all->names.end());
  EXPECT_EQ(all->names, (std::vector<std::string>{"a1", "a2"}));
  EXPECT_TRUE(all->complete);
  const Result<Listing> cut = ListNames(handle.borrow(), {}, 2);
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->names.size(), 2U);
  EXPECT_FALSE(cut->complete);
}

TEST(TreeRemoval, RemoveEmptyDirectoryOnlyRemovesTheHeldOne) {
  const TempDir dir;
  MakeDirectory(dir / "d");
  const UniqueFd parent = OpenDirectory(dir.path());
  const UniqueFd held = OpenDirectory(dir / "d");
  std::filesystem::rename(dir / "d", dir / "moved");
  EXPECT_FALSE(RemoveEmptyDirectory({parent.borrow(), "d"}, held.borrow()).has_value());
  MakeDirectory(dir / "d");
  EXPECT_FALSE(RemoveEmptyDirectory({parent.borrow(), "d"}, held.borrow()).has_value());
  EXPECT_TRUE(Exists(dir / "d"));
  EXPECT_TRUE(RemoveEmptyDirectory({parent.borrow(), "moved"}, held.borrow()).has_value());
  EXPECT_FALSE(Exists(dir / "moved"));
  EXPECT_TRUE(RemoveEmptyDirectory({parent.borrow(), "moved"}, held.borrow()).has_value());
}

}  // namespace
}  // namespace bulkhead::staging
