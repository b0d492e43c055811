#include "wasi/descriptor_table.h"

#include <algorithm>
#include <utility>

namespace bulkhead::wasi {

DescriptorTable::Reservation::~Reservation() {
  if (table_ != nullptr) {
    const std::lock_guard lock(table_->mutex_);
    table_->slots_[fd_].taken = false;
  }
}

void DescriptorTable::Reservation::Fill(TableEntry entry) {
  const std::lock_guard lock(table_->mutex_);
  table_->slots_[fd_].entry = std::move(entry);
  table_ = nullptr;
}

Answer<DescriptorTable::Reservation> DescriptorTable::Reserve() {
  const std::lock_guard lock(mutex_);
  auto slot = std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return !s.taken; });
  if (slot == slots_.end()) {
    if (slots_.size() == kDescriptorsMax) {
      return Refuse(Errno::kMfile);
    }
    slot = slots_.emplace(slots_.end());
  }
  slot->taken = true;
  return Reservation(*this, static_cast<std::uint32_t>(slot - slots_.begin()));
}

Answer<std::uint32_t> DescriptorTable::Insert(TableEntry entry) {
  Reservation reservation = BH_WASI_TRY(Reserve());
  const std::uint32_t fd = reservation.fd();
  reservation.Fill(std::move(entry));
  return fd;
}

Answer<TableEntry> DescriptorTable::Find(std::uint32_t fd, Rights needed) const {
  const std::lock_guard lock(mutex_);
  if (fd >= slots_.size() || slots_[fd].entry.descriptor == nullptr) {
    return Refuse(Errno::kBadf);
  }
  const TableEntry& entry = slots_[fd].entry;
  const Rights missing = needed & ~entry.base;
  if (missing == 0) {
    return entry;
  }
  const Rights never = missing & ~entry.descriptor->applicable_rights();
  return Refuse(never != 0 ? entry.descriptor->InapplicableError(never) : Errno::kNotcapable);
}

Answer<void> DescriptorTable::Close(std::uint32_t fd) {
  TableEntry closed;  // destroyed after the lock is released: closing may take time
  const std::lock_guard lock(mutex_);
  Slot* slot = OpenSlot(fd);
  if (slot == nullptr) {
    return Refuse(Errno::kBadf);
  }
  closed = std::exchange(slot->entry, TableEntry{});
  slot->taken = false;
  return {};
}

Answer<void> DescriptorTable::Renumber(std::uint32_t from, std::uint32_t to) {
  TableEntry closed;
  const std::lock_guard lock(mutex_);
  Slot* source = OpenSlot(from);
  Slot* target = OpenSlot(to);
  if (source == nullptr || target == nullptr) {
    return Refuse(Errno::kBadf);
  }
  if (source == target) {
    return {};
  }
  closed = std::exchange(target->entry, std::exchange(source->entry, TableEntry{}));
  source->taken = false;
  return {};
}

Answer<void> DescriptorTable::NarrowRights(std::uint32_t fd, Rights base, Rights inheriting) {
  const std::lock_guard lock(mutex_);
  Slot* slot = OpenSlot(fd);
  if (slot == nullptr) {
    return Refuse(Errno::kBadf);
  }
  if ((base & ~slot->entry.base) != 0 || (inheriting & ~slot->entry.inheriting) != 0) {
    return Refuse(Errno::kNotcapable);
  }
  slot->entry.base = base;
  slot->entry.inheriting = inheriting;
  return {};
}

DescriptorTable::Slot* DescriptorTable::OpenSlot(std::uint32_t fd) {
  return fd < slots_.size() && slots_[fd].entry.descriptor != nullptr ? &slots_[fd] : nullptr;
}

}  // namespace bulkhead::wasi
