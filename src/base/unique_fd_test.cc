#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace bulkhead {
namespace {

int OpenNull() {
  return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool IsOpen(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

TEST(UniqueFd, ClosesOnceAndKeepsErrno) {
  const int fd = OpenNull();
  {
    const UniqueFd owner(fd);
    EXPECT_TRUE(owner.valid());
    EXPECT_EQ(owner.borrow().get(), fd);
    errno = EXDEV;
  }
  EXPECT_EQ(errno, EXDEV);
  EXPECT_FALSE(IsOpen(fd));
}

TEST(UniqueFd, MoveTransfersOwnership) {
  UniqueFd first(OpenNull());
  const int fd = first.get();
  UniqueFd second(std::move(first));
  EXPECT_EQ(second.get(), fd);
  EXPECT_FALSE(
      first.valid());  // NOLINT(bugprone-use-after-move): the moved-from state is the subject
  UniqueFd third(OpenNull());
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_FALSE(IsOpen(replaced));
  EXPECT_TRUE(IsOpen(fd));
}

TEST(UniqueFd, SurvivesMoveToItself) {
  UniqueFd owner(OpenNull());
  UniqueFd& alias = owner;
  owner = std::move(alias);
  EXPECT_TRUE(IsOpen(owner.get()));
}

TEST(UniqueFd, ReleaseGivesUpOwnership) {
  UniqueFd owner(OpenNull());
  const int fd = owner.Release();
  EXPECT_FALSE(owner.valid());
  EXPECT_TRUE(IsOpen(fd));
  close(fd);
}

TEST(UniqueFd, InvalidBorrowIsInvalid) {
  EXPECT_FALSE(UniqueFd().borrow().valid());
  EXPECT_FALSE(BorrowedFd().valid());
}

}  // namespace
}  // namespace bulkhead
