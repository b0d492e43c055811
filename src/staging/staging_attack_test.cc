// Staging under attack: somebody swaps, links or adds things. Nothing outside is written, and
// nothing blocks.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <functional>
#include <string>

#include "staging/staging_area.h"
#include "staging/staging_testing.h"

namespace bulkhead::staging {
namespace {

// Stages "new" over "old", lets `attack` work on the staged path at the given moment, and commits.
enum class Moment { kBeforeCommit, kBeforeRename };

CommitResult CommitUnderAttack(const TempDir& dir, Moment moment,
                               const std::function<void(const std::string& staged)>& attack) {
  WriteFile(dir / "out", "old");
  StagingHooks hooks;
  if (moment == Moment::kBeforeRename) {
    hooks.between_fsync_and_rename = [&] { attack(StagingIn(dir.path()) + "/output"); };
  }
  const auto area = StageText(GrantFor(dir / "out"), "new", hooks);
  if (moment == Moment::kBeforeCommit) {
    attack(StagingIn(dir.path()) + "/output");
  }
  return area->Commit(Never);
}

void ExpectRefused(const TempDir& dir, const CommitResult& result) {
  ASSERT_FALSE(result.published);
  EXPECT_EQ(result.failed_at, CommitStep::kCheckFile);
  EXPECT_EQ(result.detail.code, ErrorCode::kOutput);
  EXPECT_NE(result.detail.message.find(dir / "out"), std::string::npos) << result.detail.message;
  EXPECT_FALSE(result.removal_failed) << result.removal_detail.message;
  EXPECT_EQ(ReadFile(dir / "out"), "old");
}

TEST(Bar, R17SwappedStagedEntryIsRefusedAtEitherMoment) {
  const std::function<void(const std::string&)> attacks[] = {
      [](const std::string& staged) { std::filesystem::create_symlink("/etc/passwd", staged); },
      [](const std::string& staged) { std::filesystem::create_symlink("output", staged); },
      [](const std::string& staged) { MakeDirectory(staged); },
      [](const std::string& staged) { EXPECT_EQ(mkfifo(staged.c_str(), 0600), 0); },
      [](const std::string& staged) { WriteFile(staged, "new"); },
      [](const std::string& /*staged*/) {},
  };
  for (const Moment moment : {Moment::kBeforeCommit, Moment::kBeforeRename}) {
    for (const auto& attack : attacks) {
      const TempDir dir;
      const CommitResult result = CommitUnderAttack(dir, moment, [&](const std::string& staged) {
        // Kept under another name outside, so that the new object cannot get the old inode number.
        std::filesystem::rename(staged, dir / "kept");
        attack(staged);
      });
      ExpectRefused(dir, result);
      EXPECT_EQ(EntriesOf(dir.path()).size(), 2U);
    }
  }
}

TEST(Bar, R17StagedDeviceIsRefused) {
  const TempDir dir;
  bool made = false;
  const CommitResult result =
      CommitUnderAttack(dir, Moment::kBeforeCommit, [&](const std::string& staged) {
        std::filesystem::remove(staged);
        made = mknod(staged.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0;
      });
  if (!made) {
    GTEST_SKIP() << "making a device node needs root outside a user namespace";
  }
  ExpectRefused(dir, result);
}

TEST(Bar, R17SecondNameOfTheStagedFileIsRefused) {
  for (const Moment moment : {Moment::kBeforeCommit, Moment::kBeforeRename}) {
    const TempDir dir;
    const CommitResult result = CommitUnderAttack(dir, moment, [&](const std::string& staged) {
      std::filesystem::create_hard_link(staged, dir / "second");
    });
    ExpectRefused(dir, result);
    EXPECT_EQ(ModeOf(dir / "second") & 07000U, 0U);
  }
}

TEST(Bar, R17FileThatGrowsDuringPublicationIsRefused) {
  const TempDir dir;
  const CommitResult result = CommitUnderAttack(
      dir, Moment::kBeforeRename, [](const std::string& staged) { WriteFile(staged, "longer"); });
  ExpectRefused(dir, result);
}

TEST(Bar, R17StagingDirectorySwappedMidCommitIsLeftAloneAndReported) {
  const TempDir dir;
  MakeDirectory(dir / "victim");
  WriteFile(dir / "victim/output", "victim");
  std::string staging;
  StagingHooks hooks;
  hooks.between_fsync_and_rename = [&] {
    staging = StagingIn(dir.path());
    std::filesystem::rename(staging, dir / "elsewhere");
    std::filesystem::rename(dir / "victim", staging);
  };
  const CommitResult result = StageText(GrantFor(dir / "out"), "new", hooks)->Commit(Never);
  // The handle still leads to our own file, so publication is right; the stranger is not touched.
  EXPECT_TRUE(result.published);
  EXPECT_EQ(ReadFile(dir / "out"), "new");
  EXPECT_TRUE(result.removal_failed);
  EXPECT_EQ(ReadFile(staging + "/output"), "victim");
  EXPECT_TRUE(EntriesOf(dir / "elsewhere").empty());
}

TEST(Bar, R17StagingDirectorySwappedForASymbolicLinkIsNotFollowed) {
  const TempDir dir;
  MakeDirectory(dir / "victim");
  WriteFile(dir / "victim/output", "victim");
  const auto area = StageText(GrantFor(dir / "out"), "new");
  const std::string staging = StagingIn(dir.path());
  std::filesystem::rename(staging, dir / "elsewhere");
  std::filesystem::create_directory_symlink(dir / "victim", staging);
  EXPECT_FALSE(area->Discard().has_value());
  EXPECT_EQ(ReadFile(dir / "victim/output"), "victim");
  EXPECT_TRUE(std::filesystem::is_symlink(staging));
}

TEST(Bar, R17SpecialFilesAsDestinationAreKept) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "out").c_str(), 0600), 0);
  const CommitResult result = StageText(GrantFor(dir / "out"), "new")->Commit(Never);
  EXPECT_FALSE(result.published);
  EXPECT_EQ(result.failed_at, CommitStep::kCheckDestination);
  EXPECT_NE(result.detail.message.find("named pipe"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_fifo(dir / "out"));
  EXPECT_EQ(EntriesOf(dir.path()).size(), 1U);
}

TEST(Bar, R17ExtraEntriesAreRemovedAndLinksNotFollowed) {
  const TempDir dir;
  MakeDirectory(dir / "victim");
  WriteFile(dir / "victim/kept", "kept");
  const auto area = StageText(GrantFor(dir / "out"), "new");
  const std::string staging = StagingIn(dir.path());
  WriteFile(staging + "/a\nb", "extra");
  ASSERT_EQ(mkfifo((staging + "/pipe").c_str(), 0600), 0);
  std::filesystem::create_directory_symlink(dir / "victim", staging + "/link");
  MakeDirectory(staging + "/one");
  MakeDirectory(staging + "/one/two");
  std::filesystem::create_directory_symlink(dir / "victim", staging + "/one/two/link");
  WriteFile(staging + "/one/two/file", "extra");

  const CommitResult result = area->Commit(Never);

  EXPECT_TRUE(result.published);
  EXPECT_FALSE(result.removal_failed) << result.removal_detail.message;
  EXPECT_EQ(EntriesOf(dir.path()).size(), 2U);
  EXPECT_EQ(ReadFile(dir / "victim/kept"), "kept");
}

}  // namespace
}  // namespace bulkhead::staging
