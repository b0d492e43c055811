#include "cli/report_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/random_id.h"

namespace bulkhead::cli {
namespace {

namespace fs = std::filesystem;

class ReportFile : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(dir_); }

  void TearDown() override { fs::remove_all(dir_); }

  std::string Path(const std::string& name) const { return (dir_ / name).string(); }

  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::size_t Entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }

  static std::string Refusal(const std::string& path) {
    const auto destination = ReportDestination::Resolve(path);
    EXPECT_FALSE(destination) << path;
    return destination ? std::string() : destination.error().message;
  }

  fs::path dir_ = fs::temp_directory_path() / ("bulkhead-report-test-" + RandomHex(8));
};

TEST_F(ReportFile, NothingIsCreatedBeforeTheText) {
  const auto destination = ReportDestination::Resolve(Path("r.json"));
  ASSERT_TRUE(destination);
  EXPECT_EQ(Entries(), 0U);
  ASSERT_TRUE(destination->Write("one"));
  EXPECT_EQ(Content(Path("r.json")), "one");
  ASSERT_TRUE(destination->Write("two"));
  EXPECT_EQ(Content(Path("r.json")), "two");
  EXPECT_EQ(Entries(), 1U);
}

TEST_F(ReportFile, ModeFollowsTheUmask) {
  const mode_t old_mask = umask(027);
  ASSERT_TRUE(ReportDestination::Resolve(Path("r.json"))->Write("x"));
  umask(old_mask);
  struct stat entry{};
  ASSERT_EQ(stat(Path("r.json").c_str(), &entry), 0);
  EXPECT_EQ(entry.st_mode & 07777U, 0640U);
}

TEST_F(ReportFile, LinksAreFollowedAndStay) {
  std::ofstream(Path("target")) << "old";
  fs::create_symlink("target", Path("link"));
  ASSERT_TRUE(ReportDestination::Resolve(Path("link"))->Write("new"));
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Content(Path("target")), "new");
}

TEST_F(ReportFile, UnusableDestinationsAreNamed) {
  EXPECT_EQ(Refusal(Path("")), "'" + Path("") + "' is a directory");
  EXPECT_EQ(Refusal(Path("none/r.json")), "the directory '" + Path("none") + "' does not exist");
  std::ofstream(Path("file")) << "x";
  EXPECT_EQ(Refusal(Path("file/r.json")), "'" + Path("file") + "' is not a directory");
  fs::create_symlink("nowhere", Path("dangling"));
  EXPECT_EQ(Refusal(Path("dangling")),
            "'" + Path("dangling") + "' is a symbolic link that leads nowhere");
  EXPECT_EQ(Refusal("/dev/fd/987"), "'/dev/fd/987' is not open for writing");
}

TEST_F(ReportFile, DevicesAndDescriptorsAreWrittenTo) {
  const auto full = ReportDestination::Resolve("/dev/full");
  ASSERT_TRUE(full);
  const Status written = full->Write("x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "cannot write '/dev/full': No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));

  const UniqueFd file(open(Path("kept").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::string path = "/dev/fd/" + std::to_string(file.get());
  ASSERT_TRUE(ReportDestination::Resolve(path)->Write("a"));
  ASSERT_TRUE(ReportDestination::Resolve(path)->Write("b"));
  EXPECT_EQ(Content(Path("kept")), "ab");
}

TEST_F(ReportFile, AFifoWithoutReaderDoesNotBlock) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const auto destination = ReportDestination::Resolve(Path("fifo"));
  ASSERT_TRUE(destination);
  EXPECT_FALSE(destination->Write("x"));
}

TEST_F(ReportFile, ADirectoryThatVanishedIsReported) {
  fs::create_directory(Path("d"));
  const auto destination = ReportDestination::Resolve(Path("d/r.json"));
  ASSERT_TRUE(destination);
  fs::remove(Path("d"));
  const Status written = destination->Write("x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kOutput);
}

}  // namespace
}  // namespace bulkhead::cli
