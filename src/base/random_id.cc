#include "base/random_id.h"

#include <sys/random.h>

#include <cerrno>
#include <vector>

#include "base/check.h"
#include "base/strings.h"

namespace bulkhead {

void FillRandom(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else {
      BH_CHECK(errno == EINTR);
    }
  }
}

std::string RandomHex(std::size_t byte_count) {
  std::vector<std::uint8_t> bytes(byte_count);
  FillRandom(bytes);
  return ToHex(bytes);
}

}  // namespace bulkhead
