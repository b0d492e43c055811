// libFuzzer entry over admission: any bytes give a verdict, in bounded time and memory, without a
// crash.
#include <bulkhead/module.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "admission/admit.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  const bulkhead::Inspection inspection =
      bulkhead::admission::InspectBytes(bytes, bulkhead::ModulePolicy{});
  // What is admitted has a profile.
  if (inspection.refusals.empty() && inspection.info.profile == bulkhead::Profile::kAuto) {
    std::abort();
  }
  return 0;
}
