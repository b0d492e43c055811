#include <bulkhead/result.h>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/errno_error.h"

namespace bulkhead {
namespace {

// The names are part of the interface.
TEST(Errors, NamesAreStable) {
  constexpr std::array<std::pair<ErrorCode, std::string_view>, 11> kNames = {{
      {ErrorCode::kInvalidArgument, "invalid-argument"},
      {ErrorCode::kNotFound, "not-found"},
      {ErrorCode::kIo, "io"},
      {ErrorCode::kResourceExhausted, "resource-exhausted"},
      {ErrorCode::kUnsupported, "unsupported"},
      {ErrorCode::kModuleRefused, "module-refused"},
      {ErrorCode::kLaunch, "launch"},
      {ErrorCode::kProtocol, "protocol"},
      {ErrorCode::kOutput, "output"},
      {ErrorCode::kShutdown, "shutdown"},
      {ErrorCode::kInternal, "internal"},
  }};
  for (const auto& [code, name] : kNames) {
    EXPECT_EQ(ErrorName(code), name);
  }
}

Result<std::unique_ptr<int>> MakeOne(bool works) {
  if (!works) {
    return Fail(ErrorCode::kIo, "no luck", EIO, "stage");
  }
  return std::make_unique<int>(1);
}

Status Check(bool works) {
  if (!works) {
    return Fail(ErrorCode::kLaunch, "refused");
  }
  return {};
}

Result<int> AddOne(bool works, bool allowed) {
  const std::unique_ptr<int> one = BH_TRY(MakeOne(works));
  BH_TRY_CONTEXT(Check(allowed), "adding");
  return *one + 1;
}

TEST(Errors, TryPassesValuesAndErrorsOn) {
  EXPECT_EQ(*AddOne(true, true), 2);
  const Result<int> io = AddOne(false, true);
  ASSERT_FALSE(io.has_value());
  EXPECT_EQ(io.error().code, ErrorCode::kIo);
  EXPECT_EQ(io.error().message, "no luck");
  EXPECT_EQ(io.error().sys_errno, EIO);
  EXPECT_EQ(io.error().reason, "stage");
  const Result<int> launch = AddOne(true, false);
  ASSERT_FALSE(launch.has_value());
  EXPECT_EQ(launch.error().code, ErrorCode::kLaunch);
  EXPECT_EQ(launch.error().message, "adding: refused");
}

TEST(Errors, ErrnoErrorsNameCallObjectAndCause) {
  const Error missing = ErrnoError("open", "/x/y", ENOENT);
  EXPECT_EQ(missing.code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.sys_errno, ENOENT);
  EXPECT_EQ(missing.message, "open '/x/y': No such file or directory");
  EXPECT_EQ(ErrnoError("open", "f", EMFILE).code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(ErrnoError("write", "f", EIO).code, ErrorCode::kIo);
  EXPECT_EQ(ErrnoError(ErrorCode::kOutput, "rename", "f", ENOENT).code, ErrorCode::kOutput);
  EXPECT_FALSE(ErrnoText(123456).empty());
}

TEST(Errors, ErrnoErrorsShowOddNamesSafely) {
  EXPECT_NE(ErrnoError("open", "a\nb", EIO).message.find("'a\\x0ab'"), std::string::npos);
}

}  // namespace
}  // namespace bulkhead
