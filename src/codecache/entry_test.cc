// The form of an entry, and every way in which it can be wrong.
#include "codecache/entry.h"

#include <gtest/gtest.h>

#include "codecache/testing.h"

namespace bulkhead::codecache {
namespace {

class EntryTest : public testing::Test {
 protected:
  EntryTest() {
    const UniqueFd file(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_TRUE(WriteEntry(file.borrow(), key_, CodeOf(content_)));
    whole_ = ReadFile(path_);
  }

  Result<std::uint64_t> Check(const Key& key) const {
    const UniqueFd file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return CheckEntry(file.borrow(), key);
  }

  // As Check, of these bytes: empty if they are the entry.
  std::string Fault(std::string_view bytes) const {
    WriteFile(path_, bytes);
    const auto checked = Check(key_);
    EXPECT_TRUE(checked || checked.error().code == ErrorCode::kUnsupported);
    return checked ? std::string() : checked.error().message;
  }

  const TempDir dir_;
  const std::string path_ = dir_ / "entry";
  const Key key_ = KeyFor("module");
  const std::string content_ = LongContent();
  std::string whole_;
};

TEST_F(EntryTest, WhatIsWrittenIsWhole) {
  EXPECT_EQ(whole_.size(), kHeaderBytes + content_.size());
  EXPECT_EQ(whole_.substr(kHeaderBytes), content_);
  const auto checked = Check(key_);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(*checked, content_.size());
}

// docs and entry.h promise these places.
TEST_F(EntryTest, HeaderIsLaidOutAsDescribed) {
  EXPECT_EQ(whole_.substr(0, 8), "BHCODE\r\n");
  EXPECT_EQ(whole_.substr(8, 8), std::string("\x01\0\0\0\x58\0\0\0", 8));
  EXPECT_EQ(whole_.substr(16, 32),
            std::string(reinterpret_cast<const char*>(key_.digest.data()), key_.digest.size()));
}

TEST_F(EntryTest, EveryByteOfTheHeaderCounts) {
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    std::string bytes = whole_;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    EXPECT_NE(Fault(bytes), "") << i;
  }
  EXPECT_EQ(Fault(whole_), "");
}

TEST_F(EntryTest, EveryByteOfTheCodeCounts) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, content_.size() / 2,
                              std::size_t{262143}, std::size_t{262144}, content_.size() - 1}) {
    std::string bytes = whole_;
    bytes[kHeaderBytes + i] = static_cast<char>(bytes[kHeaderBytes + i] ^ 0x80);
    EXPECT_EQ(Fault(bytes), "its content is not what was written") << i;
  }
}

TEST_F(EntryTest, AnyOtherLengthIsNoticed) {
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{kHeaderBytes - 1}, std::size_t{kHeaderBytes},
        std::size_t{kHeaderBytes + 1}, whole_.size() / 2, whole_.size() - 1}) {
    EXPECT_NE(Fault(whole_.substr(0, length)), "") << length;
  }
  EXPECT_EQ(Fault(whole_ + '\0'), "it is not as long as it says");
  EXPECT_NE(Fault(std::string(whole_.size(), '\0')), "");
}

TEST_F(EntryTest, AnotherKeysEntryIsNotThisOne) {
  const auto checked = Check(KeyFor("another module"));
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "its header is that of another entry, or of none");
}

TEST_F(EntryTest, NobodyElseMayWriteIt) {
  for (const mode_t mode : {0620U, 0602U}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    const auto checked = Check(key_);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().message, "others may write to it");
  }
}

TEST_F(EntryTest, BelongsToThisUser) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "giving a file away needs root";
  }
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  const auto checked = Check(key_);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "it belongs to user 12345");
}

TEST_F(EntryTest, CodeThatEndsEarlyIsNotWritten) {
  Code code = CodeOf("short");
  code.bytes = 6;
  const UniqueFd file(open(path_.c_str(), O_RDWR | O_TRUNC | O_CLOEXEC));
  EXPECT_FALSE(WriteEntry(file.borrow(), key_, code));
  EXPECT_FALSE(Check(key_));
}

}  // namespace
}  // namespace bulkhead::codecache
