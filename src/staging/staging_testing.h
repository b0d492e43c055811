// What the tests of this folder share: short forms of everyday file work.
#pragma once

#include <bulkhead/output_grant.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing.h"
#include "base/unique_fd.h"
#include "staging/staging_area.h"

namespace bulkhead::staging {

inline void MakeDirectory(const std::string& path) {
  std::filesystem::create_directory(path);
}

inline bool Exists(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0;
}

inline mode_t ModeOf(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777U;
}

inline std::vector<std::string> EntriesOf(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

// The full path of the only staging directory in `path`.
inline std::string StagingIn(const std::string& path) {
  std::string found;
  for (const std::string& name : EntriesOf(path)) {
    if (name.starts_with(kStagingPrefix)) {
      EXPECT_TRUE(found.empty()) << "two staging directories in " << path;
      found = path + "/" + name;
    }
  }
  EXPECT_FALSE(found.empty()) << "no staging directory in " << path;
  return found;
}

inline UniqueFd OpenDirectory(const std::string& path) {
  UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_TRUE(directory.valid()) << path;
  return directory;
}

inline OutputGrant GrantFor(std::string path) {
  OutputGrant grant;
  grant.path = std::move(path);
  return grant;
}

inline OwnerIdentity Self() {
  Result<OwnerIdentity> self = OwnerIdentity::ReadSelf();
  EXPECT_TRUE(self.has_value());
  return self.value_or(OwnerIdentity{});
}

// A staging area that must come to be.
inline std::unique_ptr<StagingArea> Stage(const OutputGrant& grant, StagingHooks hooks = {}) {
  auto area = StagingArea::Create(grant, Self(), std::move(hooks));
  EXPECT_TRUE(area.has_value()) << area.error().message;
  return area ? std::move(*area) : nullptr;
}

// What a worker does with its descriptor.
inline void WriteStaged(const StagingArea& area, std::string_view text) {
  ASSERT_EQ(write(area.file().get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

inline std::unique_ptr<StagingArea> StageText(const OutputGrant& grant, std::string_view text,
                                              StagingHooks hooks = {}) {
  auto area = Stage(grant, std::move(hooks));
  if (area != nullptr) {
    WriteStaged(*area, text);
  }
  return area;
}

inline bool Never() {
  return false;
}

inline bool Always() {
  return true;
}

// Another effective user for one scope, when the test runs as root; otherwise nothing changes.
class OrdinaryUser {
 public:
  static constexpr uid_t kNobody = 65534;

  OrdinaryUser() : was_root_(geteuid() == 0) {
    if (was_root_) {
      EXPECT_EQ(seteuid(kNobody), 0);
    }
  }

  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

  ~OrdinaryUser() {
    if (was_root_) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }

 private:
  bool was_root_;
};

// A small tmpfs on a directory for one scope, in a mount namespace of this process. `mounted` is
// false where the machine does not allow it.
class SmallFileSystem {
 public:
  SmallFileSystem(std::string path, const char* options) : path_(std::move(path)) {
    MakeDirectory(path_);
    mounted_ = unshare(CLONE_NEWNS) == 0 &&
               mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               mount("tmpfs", path_.c_str(), "tmpfs", 0, options) == 0;
  }

  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;

  ~SmallFileSystem() {
    if (mounted_) {
      EXPECT_EQ(umount2(path_.c_str(), MNT_DETACH), 0);
    }
  }

  bool mounted() const { return mounted_; }

  static constexpr const char* kNeeds = "mounting a tmpfs needs CAP_SYS_ADMIN";

 private:
  std::string path_;
  bool mounted_ = false;
};

class ScopedUmask {
 public:
  explicit ScopedUmask(mode_t mask) : old_(umask(mask)) {}

  ScopedUmask(const ScopedUmask&) = delete;
  ScopedUmask& operator=(const ScopedUmask&) = delete;

  ~ScopedUmask() { umask(old_); }

 private:
  mode_t old_;
};

}  // namespace bulkhead::staging
