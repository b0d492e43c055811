#include "support/streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

namespace bulkhead::test {

Pipe MakePipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

UniqueFd MemoryFile(std::string_view content) {
  UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
  EXPECT_EQ(lseek(file.get(), 0, SEEK_SET), 0);
  return file;
}

std::string ReadAll(BorrowedFd fd) {
  std::string all;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      return all;
    }
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace bulkhead::test
