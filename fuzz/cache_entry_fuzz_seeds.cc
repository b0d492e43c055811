#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "cache_entry_key.h"
#include "codecache/entry.h"
#include "seeds.h"

namespace bulkhead::fuzz {
namespace {

std::string EntryOf(std::string_view code) {
  const UniqueFd from(memfd_create("code", MFD_CLOEXEC));
  const UniqueFd to(memfd_create("entry", MFD_CLOEXEC));
  BH_CHECK(write(from.get(), code.data(), code.size()) == static_cast<ssize_t>(code.size()));
  const codecache::Code source{UniqueFd(dup(from.get())), 0, code.size()};
  BH_CHECK(codecache::WriteEntry(to.borrow(), EntryKey(), source).has_value());
  std::string entry(codecache::kHeaderBytes + code.size(), '\0');
  BH_CHECK(pread(to.get(), entry.data(), entry.size(), 0) == static_cast<ssize_t>(entry.size()));
  return entry;
}

}  // namespace

std::vector<std::string> Seeds() {
  return {EntryOf(""), EntryOf("c"), EntryOf(std::string(300, 'c'))};
}

}  // namespace bulkhead::fuzz
