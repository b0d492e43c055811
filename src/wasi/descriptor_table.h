// The numbers of one guest: which descriptor each stands for and what may be done through it. One
// table for all threads, guarded by one mutex that is never held during an operation on a
// descriptor.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "wasi/descriptor.h"

namespace bulkhead::wasi {

struct TableEntry {
  std::shared_ptr<Descriptor> descriptor;
  Rights base = 0;
  Rights inheriting = 0;
};

class DescriptorTable {
 public:
  // As many as the usual soft limit of a process; it bounds what a guest makes us remember.
  static constexpr std::uint32_t kDescriptorsMax = 1024;

  // A number set aside for a descriptor that is still to be opened, so that a full table is noticed
  // before a file is created. Given back unless filled.
  class Reservation {
   public:
    Reservation(DescriptorTable& table, std::uint32_t fd) : table_(&table), fd_(fd) {}

    Reservation(Reservation&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)), fd_(other.fd_) {}

    Reservation& operator=(Reservation&&) = delete;
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;
    ~Reservation();

    std::uint32_t fd() const { return fd_; }

    void Fill(TableEntry entry);

   private:
    DescriptorTable* table_;
    std::uint32_t fd_;
  };

  // The lowest free number; kMfile when there is none.
  Answer<Reservation> Reserve();
  Answer<std::uint32_t> Insert(TableEntry entry);

  // kBadf for a number that is not open. With missing rights: the descriptor's InapplicableError if
  // they could never be granted on it, else kNotcapable.
  Answer<TableEntry> Find(std::uint32_t fd, Rights needed) const;

  Answer<void> Close(std::uint32_t fd);
  // Both must be open; `to` is closed and becomes `from`, in one step.
  Answer<void> Renumber(std::uint32_t from, std::uint32_t to);
  // Rights only ever shrink: kNotcapable otherwise.
  Answer<void> NarrowRights(std::uint32_t fd, Rights base, Rights inheriting);

 private:
  struct Slot {
    bool taken = false;
    TableEntry entry;  // no descriptor: reserved
  };

  Slot* OpenSlot(std::uint32_t fd);

  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
};

}  // namespace bulkhead::wasi
