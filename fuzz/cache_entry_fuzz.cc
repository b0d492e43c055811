// Whatever stands in a file of the cache: it is an entry, and then the very bytes that would be
// written for its code, or a reason is given.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cache_entry_key.h"
#include "codecache/entry.h"

namespace bulkhead::codecache {
namespace {

UniqueFd FileOf(std::string_view bytes) {
  UniqueFd file(memfd_create("fuzz", MFD_CLOEXEC));
  BH_CHECK(file.valid());
  BH_CHECK(fchmod(file.get(), 0600) == 0);
  BH_CHECK(pwrite(file.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return file;
}

std::string ContentOf(BorrowedFd file) {
  std::string content(static_cast<std::size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
  BH_CHECK(pread(file.get(), content.data(), content.size(), 0) ==
           static_cast<ssize_t>(content.size()));
  return content;
}

void CheckFile(std::string_view bytes) {
  const UniqueFd file = FileOf(bytes);
  const Result<std::uint64_t> size = CheckEntry(file.borrow(), fuzz::EntryKey());
  if (!size) {
    BH_CHECK(size.error().code == ErrorCode::kUnsupported);
    BH_CHECK(!size.error().message.empty());
    return;
  }
  BH_CHECK(*size + kHeaderBytes == bytes.size());
  const Code code{UniqueFd(dup(file.get())), kHeaderBytes, *size};
  const UniqueFd again = FileOf({});
  BH_CHECK(WriteEntry(again.borrow(), fuzz::EntryKey(), code).has_value());
  BH_CHECK(ContentOf(again.borrow()) == bytes);
}

}  // namespace
}  // namespace bulkhead::codecache

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bulkhead::codecache::CheckFile({reinterpret_cast<const char*>(data), size});
  return 0;
}
