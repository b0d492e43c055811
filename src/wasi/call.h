// One host call as the functions see it: its arguments, the guest's memory and the guest's
// descriptors. An address is checked before anything happens, so a call that ends in kFault has had
// no effect.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "wasi/answer.h"
#include "wasi/descriptor.h"
#include "wasi/descriptor_table.h"
#include "wasi/wasi.h"

namespace bulkhead::wasi {

// A guest's scatter/gather list, read once and checked: each part in memory, the sum within 32
// bits. Large, so made in place.
class GuestBuffers {
 public:
  // The kernel's own bound for one call (IOV_MAX); longer lists are kInval.
  static constexpr std::uint32_t kPartsMax = 1024;

  GuestBuffers() = default;
  GuestBuffers(const GuestBuffers&) = delete;
  GuestBuffers& operator=(const GuestBuffers&) = delete;
  ~GuestBuffers() = default;

  Answer<void> Read(const GuestMemory& memory, std::uint32_t address, std::uint32_t parts);
  // Refers to this object.
  IoRequest Request(BorrowedFd stop) const;

 private:
  std::array<iovec, kPartsMax> parts_;  // the first `count_`
  std::uint32_t count_ = 0;
  std::uint32_t bytes_ = 0;
};

struct DirectoryEntry {
  std::shared_ptr<Descriptor> keep;  // owns `directory`
  Directory* directory = nullptr;
  Rights inheriting = 0;
};

class Call {
 public:
  Call(Wasi& wasi, GuestMemory memory, std::span<const Value> slots)
      : wasi_(wasi), memory_(memory), slots_(slots) {}

  Wasi& wasi() { return wasi_; }

  const GuestMemory& memory() const { return memory_; }

  // Argument number `i`.
  std::uint32_t U32(std::size_t i) const { return static_cast<std::uint32_t>(slots_[i].i32); }

  std::uint64_t U64(std::size_t i) const { return static_cast<std::uint64_t>(slots_[i].i64); }

  std::int64_t I64(std::size_t i) const { return slots_[i].i64; }

  // The `bytes` at the address in argument `i`.
  Answer<std::span<std::uint8_t>> Span(std::size_t i, std::uint64_t bytes) const;

  // Checks the address in argument `i` before the work, stores the result after it.
  template <class T>
  Answer<void> CheckOut(std::size_t i) const {
    return Span(i, sizeof(T)).map([](auto) {});
  }

  template <class T>
  Answer<void> Put(std::size_t i, const T& value) const {
    if (!memory_.Put(U32(i), value)) {
      return Refuse(Errno::kFault);
    }
    return {};
  }

  // The path whose address is argument `i` and whose length the next; it has passed CheckPath.
  Answer<std::string> Path(std::size_t i) const;
  Answer<bool> FollowFlag(std::size_t i) const;

  // The descriptor whose number is argument `i`, with the rights the call needs.
  Answer<TableEntry> Entry(std::size_t i, Rights needed) const;
  Answer<std::shared_ptr<Descriptor>> Find(std::size_t i, Rights needed) const;
  Answer<DirectoryEntry> FindDirectory(std::size_t i, Rights needed) const;

 private:
  Wasi& wasi_;
  const GuestMemory memory_;
  const std::span<const Value> slots_;
};

// fstflags and the two times as utimensat(2) wants them. kInval for contradicting or unknown flags.
struct TimesArguments {
  std::uint64_t access_ns = 0;
  std::uint64_t modification_ns = 0;
  std::uint32_t flags = 0;
};

Answer<FileTimes> ParseTimes(const TimesArguments& arguments);

}  // namespace bulkhead::wasi
