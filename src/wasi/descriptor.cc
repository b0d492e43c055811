#include "wasi/descriptor.h"

namespace bulkhead::wasi {

Answer<std::uint32_t> Descriptor::Read(const IoRequest& /*request*/) {
  return Refuse(Errno::kBadf);
}

Answer<std::uint32_t> Descriptor::Write(const IoRequest& /*request*/) {
  return Refuse(Errno::kBadf);
}

Answer<std::uint64_t> Descriptor::Seek(std::int64_t /*offset*/, std::uint8_t /*whence*/) {
  return Refuse(Errno::kSpipe);
}

Answer<void> Descriptor::Sync(bool /*data_only*/) {
  return Refuse(Errno::kInval);
}

Answer<void> Descriptor::Advise(FileRange /*range*/, std::uint8_t /*advice*/) {
  return Refuse(Errno::kSpipe);
}

Answer<void> Descriptor::Allocate(FileRange /*range*/) {
  return Refuse(Errno::kNotsup);
}

Answer<void> Descriptor::SetSize(std::uint64_t /*bytes*/) {
  return Refuse(Errno::kInval);
}

Answer<void> Descriptor::SetTimes(const FileTimes& /*times*/) {
  return Refuse(Errno::kNotsup);
}

Errno Directory::InapplicableError(Rights missing) const {
  return (missing & rights::kFileOnly) != 0 ? Errno::kIsdir : Errno::kNotcapable;
}

// Nothing about a directory depends on them.
Answer<void> Directory::SetFlags(std::uint16_t /*flags*/) {
  return {};
}

}  // namespace bulkhead::wasi
