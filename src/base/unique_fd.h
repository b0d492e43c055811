// UniqueFd owns one descriptor; BorrowedFd is the parameter type of whoever only uses it.
// Bare ints do not cross function boundaries.
#pragma once

#include <utility>

namespace bulkhead {

class BorrowedFd {
 public:
  constexpr BorrowedFd() = default;

  constexpr explicit BorrowedFd(int fd) : fd_(fd) {}

  constexpr int get() const { return fd_; }

  constexpr bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

class UniqueFd {
 public:
  UniqueFd() = default;

  explicit UniqueFd(int fd) : fd_(fd) {}

  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset(std::exchange(other.fd_, -1));
    }
    return *this;
  }

  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }

  bool valid() const { return fd_ >= 0; }

  BorrowedFd borrow() const { return BorrowedFd(fd_); }

  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }

  // Closes what is held (errno preserved) and takes `fd`.
  void Reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

}  // namespace bulkhead
