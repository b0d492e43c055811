#include "codecache/key.h"

#include <cpuid.h>
#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/strings.h"
#include "codecache/entry.h"

namespace bulkhead::codecache {
namespace {

constexpr std::size_t kKeyDigits = 2 * sizeof(Sha256Digest);

void Add(Sha256& sha, std::string_view part) {
  const std::string framed = fmt::format("{}:{}", part.size(), part);
  sha.Update({reinterpret_cast<const std::uint8_t*>(framed.data()), framed.size()});
}

struct Registers {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
};

// Zeros for a leaf that the processor does not have.
Registers Cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

// Register sets that the kernel saves: without it a feature of the processor cannot be used.
unsigned SavedState() {
  constexpr unsigned kHasXgetbv = 1U << 27;
  if ((Cpuid(1, 0).c & kHasXgetbv) == 0) {
    return 0;
  }
  unsigned low = 0;
  unsigned high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

}  // namespace

std::string Key::Text() const {
  return ToHex(digest);
}

bool IsKeyText(std::string_view name) {
  return name.size() == kKeyDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Key KeyOf(const KeyParts& parts) {
  Result<Sha256> sha = Sha256::Create();
  BH_CHECK(sha.has_value());  // as for the module's own digest
  Add(*sha, fmt::format("bulkhead compiled code, form {}", kEntryForm));
  for (const std::string_view part :
       {parts.module_sha256, parts.engine, parts.settings, parts.processor}) {
    Add(*sha, part);
  }
  return {sha->Finish()};
}

// Leaf 1 without its second register, which holds the number of the core.
std::string ProcessorFeatures() {
  constexpr unsigned kExtended = 0x80000001;
  const Registers basic = Cpuid(1, 0);
  const Registers more = Cpuid(7, 0);
  const Registers extended = Cpuid(kExtended, 0);
  return fmt::format("x86-64 {:08x} {:08x} {:08x} {:08x} {:08x} {:08x} {:08x} {:08x} {:08x}",
                     basic.c, basic.d, more.b, more.c, more.d, Cpuid(7, 1).a, extended.c,
                     extended.d, SavedState());
}

}  // namespace bulkhead::codecache
