// What StagingArea promises to a well-behaved run: creation, publication, stopping, discarding,
// modes, failures.
#include "staging/staging_area.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "staging/staging_testing.h"

namespace bulkhead::staging {
namespace {

constexpr const char* kSha256OfNew =
    "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437";

TEST(OneShot, O1ParentComponentInTheDestinationIsRefused) {
  const TempDir dir;
  MakeDirectory(dir / "approved");
  const auto area = StagingArea::Create(GrantFor(dir / "approved/../x"), Self());
  ASSERT_FALSE(area.has_value());
  EXPECT_EQ(area.error().code, ErrorCode::kOutput);
  EXPECT_NE(area.error().message.find("approved/../x"), std::string::npos);
  EXPECT_TRUE(EntriesOf(dir / "approved").empty());
}

TEST(OneShot, O2StagedContentIsInvisibleUntilCommit) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  const auto area = StageText(GrantFor(dir / "out"), "new");
  EXPECT_EQ(ReadFile(dir / "out"), "old");

  const CommitResult result = area->Commit(Never);

  EXPECT_TRUE(result.published);
  EXPECT_TRUE(result.durable);
  EXPECT_FALSE(result.stopped);
  EXPECT_FALSE(result.removal_failed);
  EXPECT_EQ(result.failed_at, CommitStep::kNone);
  EXPECT_EQ(result.bytes, 3U);
  EXPECT_EQ(result.sha256, kSha256OfNew);
  EXPECT_EQ(ReadFile(dir / "out"), "new");
  EXPECT_EQ(EntriesOf(dir.path()), std::vector<std::string>{"out"});
}

TEST(OneShot, O3DiscardRemovesPartialAndCompletedFiles) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  for (const std::string_view text : {"", "partial"}) {
    const auto area = StageText(GrantFor(dir / "out"), text);
    EXPECT_TRUE(area->Discard().has_value());
    EXPECT_TRUE(area->Discard().has_value());
    EXPECT_EQ(EntriesOf(dir.path()), std::vector<std::string>{"out"});
  }
  EXPECT_EQ(ReadFile(dir / "out"), "old");
}

TEST(OneShot, O4DiscardAfterAnAncestorWasRenamedLeavesTheReusedPathAlone) {
  const TempDir dir;
  MakeDirectory(dir / "here");
  const auto area = StageText(GrantFor(dir / "here/out"), "new");
  const std::string staging = StagingIn(dir / "here");
  const std::string staging_name = staging.substr(staging.rfind('/') + 1);
  std::filesystem::rename(dir / "here", dir / "moved");
  MakeDirectory(dir / "here");
  MakeDirectory(dir / ("here/" + staging_name));
  WriteFile(dir / ("here/" + staging_name + "/output"), "unrelated");

  EXPECT_TRUE(area->Discard().has_value());

  EXPECT_TRUE(EntriesOf(dir / "moved").empty());
  EXPECT_EQ(ReadFile(dir / ("here/" + staging_name + "/output")), "unrelated");
}

TEST(OneShot, O5FailedCommitAfterAnAncestorWasRenamedCleansTheMovedDirectory) {
  const TempDir dir;
  MakeDirectory(dir / "here");
  StagingHooks hooks;
  hooks.fail_rename = [] { return EIO; };
  const auto area = StageText(GrantFor(dir / "here/out"), "new", hooks);
  std::filesystem::rename(dir / "here", dir / "moved");

  const CommitResult result = area->Commit(Never);

  EXPECT_FALSE(result.published);
  EXPECT_EQ(result.failed_at, CommitStep::kReplace);
  EXPECT_EQ(result.detail.code, ErrorCode::kOutput);
  EXPECT_EQ(result.detail.sys_errno, EIO);
  EXPECT_FALSE(result.removal_failed);
  EXPECT_TRUE(EntriesOf(dir / "moved").empty());
  EXPECT_FALSE(Exists(dir / "here"));
}

TEST(OneShot, O5CommitAfterAnAncestorWasRenamedPublishesInTheMovedDirectory) {
  const TempDir dir;
  MakeDirectory(dir / "here");
  const auto area = StageText(GrantFor(dir / "here/out"), "new");
  std::filesystem::rename(dir / "here", dir / "moved");
  EXPECT_TRUE(area->Commit(Never).published);
  EXPECT_EQ(ReadFile(dir / "moved/out"), "new");
}

TEST(OneShot, O6MissingStagedFileIsAnErrorAndTheDestinationStays) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  const auto area = StageText(GrantFor(dir / "out"), "new");
  std::filesystem::remove(StagingIn(dir.path()) + "/output");

  const CommitResult result = area->Commit(Never);

  EXPECT_FALSE(result.published);
  EXPECT_EQ(result.failed_at, CommitStep::kCheckFile);
  EXPECT_EQ(result.detail.reason, "staged-file");
  EXPECT_EQ(ReadFile(dir / "out"), "old");
  EXPECT_EQ(EntriesOf(dir.path()).size(), 1U);
}

TEST(OneShot, O7DirectoryAsDestinationIsUnharmed) {
  const TempDir dir;
  MakeDirectory(dir / "out");
  WriteFile(dir / "out/kept", "kept");
  const CommitResult result = StageText(GrantFor(dir / "out"), "new")->Commit(Never);
  EXPECT_FALSE(result.published);
  EXPECT_EQ(result.failed_at, CommitStep::kCheckDestination);
  EXPECT_NE(result.detail.message.find("is a directory"), std::string::npos);
  EXPECT_EQ(ReadFile(dir / "out/kept"), "kept");
  EXPECT_EQ(EntriesOf(dir.path()).size(), 1U);
}

TEST(OneShot, O7DirectoryThatAppearsLateIsUnharmed) {
  const TempDir dir;
  StagingHooks hooks;
  hooks.between_fsync_and_rename = [&] { MakeDirectory(dir / "out"); };
  const CommitResult result = StageText(GrantFor(dir / "out"), "new", hooks)->Commit(Never);
  EXPECT_FALSE(result.published);
  EXPECT_EQ(result.failed_at, CommitStep::kReplace);
  EXPECT_EQ(result.detail.sys_errno, EISDIR);
  EXPECT_EQ(EntriesOf(dir.path()), std::vector<std::string>{"out"});
}

TEST(OneShot, O8StagedSymbolicLinkIsNeitherPublishedNorFollowed) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  WriteFile(dir / "target", "target");
  ASSERT_EQ(chmod((dir / "target").c_str(), 0640), 0);
  const auto area = StageText(GrantFor(dir / "out"), "new");
  const std::string staged = StagingIn(dir.path()) + "/output";
  std::filesystem::remove(staged);
  std::filesystem::create_symlink(dir / "target", staged);

  const CommitResult result = area->Commit(Never);

  EXPECT_FALSE(result.published);
  EXPECT_EQ(result.failed_at, CommitStep::kCheckFile);
  EXPECT_EQ(ReadFile(dir / "out"), "old");
  EXPECT_EQ(ReadFile(dir / "target"), "target");
  EXPECT_EQ(ModeOf(dir / "target"), 0640U);
  EXPECT_EQ(EntriesOf(dir.path()).size(), 2U);
}

TEST(OneShot, U1RemovalFailureTellsWhetherTheOutputWasPublished) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  StagingHooks hooks;
  hooks.fail_removal = [] { return EBUSY; };
  {
    const auto area = StageText(GrantFor(dir / "out"), "other", hooks);
    const Status discarded = area->Discard();
    ASSERT_FALSE(discarded.has_value());
    EXPECT_EQ(discarded.error().sys_errno, EBUSY);
    EXPECT_EQ(ReadFile(dir / "out"), "old");
  }
  const CommitResult result = StageText(GrantFor(dir / "out"), "new", hooks)->Commit(Never);
  EXPECT_TRUE(result.published);
  EXPECT_TRUE(result.removal_failed);
  EXPECT_EQ(result.removal_detail.sys_errno, EBUSY);
  EXPECT_EQ(result.failed_at, CommitStep::kNone);
  EXPECT_EQ(ReadFile(dir / "out"), "new");
}

TEST(OneShot, U1FailedRemovalIsTriedAgainByTheDestructor) {
  const TempDir dir;
  int calls = 0;
  StagingHooks hooks;
  hooks.fail_removal = [&] { return calls++ == 0 ? EBUSY : 0; };
  EXPECT_TRUE(StageText(GrantFor(dir / "out"), "new", hooks)->Commit(Never).removal_failed);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(EntriesOf(dir.path()), std::vector<std::string>{"out"});
}

TEST(OneShot, U2StopBeforePublicationLeavesOneOldFile) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  const CommitResult result = StageText(GrantFor(dir / "out"), "new")->Commit(Always);
  EXPECT_TRUE(result.stopped);
  EXPECT_FALSE(result.published);
  EXPECT_FALSE(result.removal_failed);
  EXPECT_EQ(result.failed_at, CommitStep::kNone);
  EXPECT_EQ(ReadFile(dir / "out"), "old");
  EXPECT_EQ(EntriesOf(dir.path()).size(), 1U);
}

TEST(OneShot, U3StopAfterTheFsyncPublishesNothing) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  bool stop = false;
  StagingHooks hooks;
  hooks.between_fsync_and_rename = [&] { stop = true; };
  const CommitResult result =
      StageText(GrantFor(dir / "out"), "new", hooks)->Commit([&] { return stop; });
  EXPECT_TRUE(stop);
  EXPECT_TRUE(result.stopped);
  EXPECT_FALSE(result.published);
  EXPECT_TRUE(result.sha256.empty());
  EXPECT_EQ(ReadFile(dir / "out"), "old");
  EXPECT_EQ(EntriesOf(dir.path()).size(), 1U);
}

TEST(OneShot, U4StopAfterTheFsyncWithFailingRemovalReportsBoth) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  bool stop = false;
  StagingHooks hooks;
  hooks.between_fsync_and_rename = [&] { stop = true; };
  hooks.fail_removal = [] { return EACCES; };
  const CommitResult result =
      StageText(GrantFor(dir / "out"), "new", hooks)->Commit([&] { return stop; });
  EXPECT_TRUE(stop);
  EXPECT_TRUE(result.stopped);
  EXPECT_TRUE(result.removal_failed);
  EXPECT_FALSE(result.published);
  EXPECT_EQ(ReadFile(dir / "out"), "old");
}

TEST(StagingArea, IsPrivateFromTheStart) {
  const TempDir dir;
  const ScopedUmask wide_open(0);
  const auto area = Stage(GrantFor(dir / "out"));
  const std::string staging = StagingIn(dir.path());
  EXPECT_EQ(ModeOf(staging), 0700U);
  EXPECT_EQ(ModeOf(staging + "/output"), 0600U);
  EXPECT_EQ(fcntl(area->file().get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(StagingArea, WorkerOffsetDoesNotDisturbPublication) {
  const TempDir dir;
  const auto area = StageText(GrantFor(dir / "out"), "new");
  const UniqueFd kept(dup(area->file().get()));
  ASSERT_EQ(lseek(kept.get(), 2, SEEK_SET), 2);
  EXPECT_EQ(area->Commit(Never).sha256, kSha256OfNew);
  EXPECT_EQ(lseek(kept.get(), 0, SEEK_CUR), 2);
}

TEST(StagingArea, DestructorDiscards) {
  const TempDir dir;
  StageText(GrantFor(dir / "out"), "new").reset();
  EXPECT_TRUE(EntriesOf(dir.path()).empty());
}

TEST(StagingArea, AnEmptyOutputIsPublished) {
  const TempDir dir;
  const CommitResult result = Stage(GrantFor(dir / "out"))->Commit(Never);
  EXPECT_TRUE(result.published);
  EXPECT_EQ(result.bytes, 0U);
  EXPECT_EQ(result.sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(StagingArea, ParentMustBeAnExistingDirectory) {
  const TempDir dir;
  WriteFile(dir / "file", "");
  for (const std::string& path : {dir / "missing/out", dir / "file/out"}) {
    const auto area = StagingArea::Create(GrantFor(path), Self());
    ASSERT_FALSE(area.has_value());
    EXPECT_EQ(area.error().code, ErrorCode::kOutput);
    EXPECT_NE(area.error().message.find(path.substr(0, path.rfind('/'))), std::string::npos)
        << area.error().message;
  }
}

TEST(StagingArea, SymbolicLinkAsParentIsFollowedOnce) {
  const TempDir dir;
  MakeDirectory(dir / "real");
  MakeDirectory(dir / "other");
  std::filesystem::create_directory_symlink(dir / "real", dir / "link");
  const auto area = StageText(GrantFor(dir / "link/out"), "new");
  std::filesystem::remove(dir / "link");
  std::filesystem::create_directory_symlink(dir / "other", dir / "link");
  EXPECT_TRUE(area->Commit(Never).published);
  EXPECT_EQ(ReadFile(dir / "real/out"), "new");
  EXPECT_TRUE(EntriesOf(dir / "other").empty());
}

TEST(StagingArea, UnwritableParentIsRefused) {
  const TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0555), 0);
  {
    const OrdinaryUser user;
    const auto area = StagingArea::Create(GrantFor(dir / "out"), Self());
    ASSERT_FALSE(area.has_value());
    EXPECT_EQ(area.error().code, ErrorCode::kOutput);
    EXPECT_EQ(area.error().sys_errno, EACCES);
    EXPECT_NE(area.error().message.find(dir / "out"), std::string::npos);
  }
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
}

TEST(StagingArea, UnreadableParentIsPublishedToButNotDurably) {
  const TempDir dir;
  MakeDirectory(dir / "drop");
  ASSERT_EQ(chmod((dir / "drop").c_str(), 0333), 0);
  {
    const OrdinaryUser user;
    const CommitResult result = StageText(GrantFor(dir / "drop/out"), "new")->Commit(Never);
    EXPECT_TRUE(result.published);
    EXPECT_FALSE(result.durable);
    EXPECT_EQ(result.failed_at, CommitStep::kSyncDirectory);
    EXPECT_EQ(result.detail.sys_errno, EACCES);
    EXPECT_FALSE(result.removal_failed) << result.removal_detail.message;
  }
  ASSERT_EQ(chmod((dir / "drop").c_str(), 0755), 0);
  EXPECT_EQ(ReadFile(dir / "drop/out"), "new");
  EXPECT_EQ(EntriesOf(dir / "drop").size(), 1U);
}

TEST(StagingArea, DirectoryFsyncFailureIsPublishedButNotDurable) {
  const TempDir dir;
  StagingHooks hooks;
  hooks.fail_sync_directory = [] { return EIO; };
  const CommitResult result = StageText(GrantFor(dir / "out"), "new", hooks)->Commit(Never);
  EXPECT_TRUE(result.published);
  EXPECT_FALSE(result.durable);
  EXPECT_EQ(result.detail.reason, "sync-directory");
  EXPECT_EQ(result.sha256, kSha256OfNew);
  EXPECT_EQ(ReadFile(dir / "out"), "new");
}

TEST(StagingArea, FileFsyncFailurePublishesNothing) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  StagingHooks hooks;
  hooks.fail_sync_file = [] { return ENOSPC; };
  const CommitResult result = StageText(GrantFor(dir / "out"), "new", hooks)->Commit(Never);
  EXPECT_FALSE(result.published);
  EXPECT_EQ(result.failed_at, CommitStep::kSyncFile);
  EXPECT_EQ(result.detail.sys_errno, ENOSPC);
  EXPECT_EQ(ReadFile(dir / "out"), "old");
  EXPECT_EQ(EntriesOf(dir.path()).size(), 1U);
}

TEST(StagingArea, SizeLimitIsInclusive) {
  const TempDir dir;
  WriteFile(dir / "out", "old");
  OutputGrant grant = GrantFor(dir / "out");
  grant.bytes_max = 4;
  const CommitResult refused = StageText(grant, "12345")->Commit(Never);
  EXPECT_FALSE(refused.published);
  EXPECT_EQ(refused.failed_at, CommitStep::kCheckSize);
  EXPECT_EQ(refused.detail.reason, "output-limit");
  EXPECT_EQ(ReadFile(dir / "out"), "old");
  EXPECT_TRUE(StageText(grant, "1234")->Commit(Never).published);
  EXPECT_EQ(ReadFile(dir / "out"), "1234");
}

TEST(StagingArea, NoClobberKeepsWhatExists) {
  const TempDir dir;
  OutputGrant grant = GrantFor(dir / "out");
  grant.no_clobber = true;
  EXPECT_TRUE(StageText(grant, "first")->Commit(Never).published);

  const CommitResult second = StageText(grant, "second")->Commit(Never);

  EXPECT_FALSE(second.published);
  EXPECT_EQ(second.failed_at, CommitStep::kReplace);
  EXPECT_EQ(second.detail.sys_errno, EEXIST);
  EXPECT_EQ(ReadFile(dir / "out"), "first");
  EXPECT_EQ(EntriesOf(dir.path()).size(), 1U);
}

TEST(StagingArea, NoClobberRefusesADanglingSymbolicLink) {
  const TempDir dir;
  std::filesystem::create_symlink(dir / "nowhere", dir / "out");
  OutputGrant grant = GrantFor(dir / "out");
  grant.no_clobber = true;
  EXPECT_FALSE(StageText(grant, "new")->Commit(Never).published);
  EXPECT_FALSE(Exists(dir / "nowhere"));
}

TEST(StagingArea, NewFileGetsTheModeTheUmaskAllows) {
  const TempDir dir;
  for (const mode_t mask : {0022U, 0077U, 0000U, 0027U}) {
    const ScopedUmask scoped(mask);
    EXPECT_TRUE(StageText(GrantFor(dir / "out"), "new")->Commit(Never).published);
    EXPECT_EQ(ModeOf(dir / "out"), 0666U & ~mask);
    std::filesystem::remove(dir / "out");
  }
}

TEST(StagingArea, ReplacedFileKeepsItsPermissionBitsButNotItsSetIdBits) {
  const TempDir dir;
  for (const mode_t mode : {0640U, 0755U, 0400U, 04755U, 02755U}) {
    WriteFile(dir / "out", "old");
    ASSERT_EQ(chmod((dir / "out").c_str(), mode), 0);
    EXPECT_TRUE(StageText(GrantFor(dir / "out"), "new")->Commit(Never).published);
    EXPECT_EQ(ModeOf(dir / "out"), mode & 0777U);
    std::filesystem::remove(dir / "out");
  }
}

TEST(StagingArea, ModeSetByTheWorkerDoesNotCount) {
  const TempDir dir;
  const ScopedUmask mask(0022);
  const auto area = StageText(GrantFor(dir / "out"), "new");
  ASSERT_EQ(fchmod(area->file().get(), 06777), 0);
  EXPECT_TRUE(area->Commit(Never).published);
  EXPECT_EQ(ModeOf(dir / "out"), 0644U);
}

TEST(StagingArea, SymbolicLinkAsDestinationIsReplacedAndItsTargetUntouched) {
  const TempDir dir;
  const ScopedUmask mask(0022);
  WriteFile(dir / "target", "target");
  ASSERT_EQ(chmod((dir / "target").c_str(), 0600), 0);
  std::filesystem::create_symlink("target", dir / "out");
  EXPECT_TRUE(StageText(GrantFor(dir / "out"), "new")->Commit(Never).published);
  EXPECT_FALSE(std::filesystem::is_symlink(dir / "out"));
  EXPECT_EQ(ReadFile(dir / "out"), "new");
  EXPECT_EQ(ModeOf(dir / "out"), 0644U);
  EXPECT_EQ(ReadFile(dir / "target"), "target");
}

TEST(StagingArea, HardLinkedDestinationLosesOnlyThisName) {
  const TempDir dir;
  WriteFile(dir / "other", "old");
  std::filesystem::create_hard_link(dir / "other", dir / "out");
  EXPECT_TRUE(StageText(GrantFor(dir / "out"), "new")->Commit(Never).published);
  EXPECT_EQ(ReadFile(dir / "other"), "old");
}

TEST(StagingArea, FullDiskIsACleanFailure) {
  const TempDir dir;
  const SmallFileSystem small(dir / "small", "size=64k");
  if (!small.mounted()) {
    GTEST_SKIP() << SmallFileSystem::kNeeds;
  }
  WriteFile(dir / "small/out", "old");
  {
    const auto area = Stage(GrantFor(dir / "small/out"));
    ASSERT_NE(area, nullptr);
    const std::string block(4096, 'x');
    ssize_t written = 0;
    for (int blocks = 0; blocks < 64 && written >= 0; ++blocks) {
      written = write(area->file().get(), block.data(), block.size());
    }
    EXPECT_EQ(written, -1);
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_EQ(ReadFile(dir / "small/out"), "old");
    EXPECT_TRUE(area->Discard().has_value());
  }
  EXPECT_EQ(EntriesOf(dir / "small"), std::vector<std::string>{"out"});
  EXPECT_EQ(ReadFile(dir / "small/out"), "old");
  EXPECT_TRUE(StageText(GrantFor(dir / "small/out"), "new")->Commit(Never).published);
}

TEST(StagingArea, FileSystemWithoutRoomForADirectoryIsRefusedAtCreation) {
  const TempDir dir;
  // Two inodes: the root and the old file.
  const SmallFileSystem small(dir / "small", "nr_inodes=2");
  if (!small.mounted()) {
    GTEST_SKIP() << SmallFileSystem::kNeeds;
  }
  WriteFile(dir / "small/out", "old");
  const auto area = StagingArea::Create(GrantFor(dir / "small/out"), Self());
  ASSERT_FALSE(area.has_value());
  EXPECT_EQ(area.error().code, ErrorCode::kOutput);
  EXPECT_EQ(area.error().sys_errno, ENOSPC);
  EXPECT_EQ(EntriesOf(dir / "small").size(), 1U);
}

// The directory fits, the file does not.
TEST(StagingArea, FailedFileCreationLeavesNothing) {
  const TempDir dir;
  const SmallFileSystem small(dir / "small", "nr_inodes=3");
  if (!small.mounted()) {
    GTEST_SKIP() << SmallFileSystem::kNeeds;
  }
  WriteFile(dir / "small/out", "old");
  const auto area = StagingArea::Create(GrantFor(dir / "small/out"), Self());
  ASSERT_FALSE(area.has_value());
  EXPECT_EQ(area.error().sys_errno, ENOSPC);
  EXPECT_EQ(EntriesOf(dir / "small"), std::vector<std::string>{"out"});
}

TEST(StagingArea, TwoRunsInOneDirectoryDoNotMeet) {
  const TempDir dir;
  const auto first = StageText(GrantFor(dir / "out"), "first");
  const auto second = StageText(GrantFor(dir / "out"), "second");
  EXPECT_TRUE(second->Commit(Never).published);
  EXPECT_TRUE(first->Commit(Never).published);
  EXPECT_EQ(ReadFile(dir / "out"), "first");
  EXPECT_EQ(EntriesOf(dir.path()).size(), 1U);
}

// Every open descriptor is closed again, whichever way the area ends.
TEST(StagingArea, LeaksNoDescriptor) {
  const TempDir dir;
  const auto open_descriptors = [] { return EntriesOf("/proc/self/fd").size(); };
  const std::size_t before = open_descriptors();
  EXPECT_TRUE(StageText(GrantFor(dir / "out"), "new")->Commit(Never).published);
  EXPECT_TRUE(StageText(GrantFor(dir / "out"), "new")->Commit(Always).stopped);
  EXPECT_TRUE(StageText(GrantFor(dir / "out"), "new")->Discard().has_value());
  EXPECT_FALSE(StagingArea::Create(GrantFor(dir / "missing/out"), Self()).has_value());
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Case, G35OddDestinationNamesArePublishedExactly) {
  const TempDir dir;
  const std::string long_name(255, 'n');
  for (const std::string& name :
       {std::string("a b"), std::string("a\"b"), std::string("a\nb"), std::string("\xE2\x98\x83"),
        std::string("\xFF\xFE"), long_name, std::string("-"), std::string("...")}) {
    MakeDirectory(dir / name);
    EXPECT_TRUE(StageText(GrantFor(dir / (name + "/" + name)), "new")->Commit(Never).published)
        << name;
    EXPECT_EQ(EntriesOf(dir / name), std::vector<std::string>{name});
    EXPECT_EQ(ReadFile(dir / (name + "/" + name)), "new");
  }
}

TEST(Case, G35LongDestinationPathIsPublished) {
  const TempDir dir;
  constexpr std::size_t kPathBytes = 3900;
  std::string parent = dir.path();
  while (parent.size() + 201 < kPathBytes) {
    parent += "/" + std::string(200, 'd');
    MakeDirectory(parent);
  }
  const std::string path = parent + "/" + std::string(kPathBytes - parent.size() - 1, 'f');
  ASSERT_EQ(path.size(), kPathBytes);
  EXPECT_TRUE(StageText(GrantFor(path), "new")->Commit(Never).published);
  EXPECT_EQ(ReadFile(path), "new");
}

TEST(Case, G35NulInTheDestinationIsRefused) {
  const TempDir dir;
  const auto area = StagingArea::Create(GrantFor(dir / std::string("a\0b", 3)), Self());
  ASSERT_FALSE(area.has_value());
  EXPECT_EQ(area.error().code, ErrorCode::kOutput);
  EXPECT_NE(area.error().message.find("NUL"), std::string::npos);
  EXPECT_TRUE(EntriesOf(dir.path()).empty());
}

}  // namespace
}  // namespace bulkhead::staging
