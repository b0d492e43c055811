#include <bulkhead/output_grant.h>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace bulkhead {
namespace {

Status ValidatePath(std::string path) {
  OutputGrant grant;
  grant.path = std::move(path);
  return grant.Validate();
}

TEST(OutputGrant, OrdinaryPathsAreAccepted) {
  for (const std::string& path :
       {std::string("/out"), std::string("/a/b/out"), std::string("/a//b/./out"),
        std::string("/a/..b/b.."), std::string("/a/..."), std::string("/a/\xFF\n"),
        "/" + std::string(255, 'n')}) {
    EXPECT_TRUE(ValidatePath(path).has_value()) << path;
  }
}

TEST(OutputGrant, OddPathsAreRefused) {
  const std::string long_path = std::string(4095, '/') + "x";
  for (const std::string& path :
       {std::string(), std::string("out"), std::string("./out"), std::string("/"),
        std::string("/a/"), std::string("/a/."), std::string("/a/.."), std::string("/.."),
        std::string("/../a"), std::string("/a/../b"), std::string("/a\0b", 4),
        "/" + std::string(256, 'n'), long_path}) {
    const Status status = ValidatePath(path);
    ASSERT_FALSE(status.has_value()) << path;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(OutputGrant, LongestPathIsAccepted) {
  EXPECT_TRUE(ValidatePath(std::string(4094, '/') + "x").has_value());
  EXPECT_FALSE(ValidatePath(std::string(4095, '/') + "x").has_value());
}

TEST(OutputGrant, LimitMustBeAPossibleFileSize) {
  OutputGrant grant;
  grant.path = "/out";
  EXPECT_EQ(grant.bytes_max, std::uint64_t{1} << 30U);
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{std::numeric_limits<std::int64_t>::max()}}) {
    grant.bytes_max = bytes;
    EXPECT_TRUE(grant.Validate().has_value());
  }
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1} << 63U}) {
    grant.bytes_max = bytes;
    EXPECT_FALSE(grant.Validate().has_value());
  }
}

}  // namespace
}  // namespace bulkhead
