#include "sketch/buffer.h"

#include <algorithm>
#include <utility>

namespace bulkhead::sketch {

Buffer::Buffer(RetainedBytes& account, std::uint32_t bytes)
    : account_(&account),
      data_(std::make_unique_for_overwrite<std::uint8_t[]>(bytes)),
      bytes_(bytes) {
  account.Charge(bytes);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    Free();
    account_ = std::exchange(other.account_, nullptr);
    data_ = std::move(other.data_);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Buffer::Free() noexcept {
  if (account_ != nullptr) {
    account_->Release(bytes_);
  }
  account_ = nullptr;
  data_.reset();
  bytes_ = 0;
}

std::span<std::uint8_t> Buffer::Grow(std::uint32_t more) {
  const std::uint32_t before = bytes_;
  Reallocate(before + more, bytes());
  account_->Charge(more);
  return bytes().subspan(before);
}

void Buffer::Absorb(Buffer tail) {
  const std::uint32_t before = bytes_;
  Reallocate(before + tail.bytes_, bytes());
  std::ranges::copy(tail.bytes(), data_.get() + before);
  tail.account_ = nullptr;  // its charge is ours now
}

void Buffer::DropFront(std::uint32_t bytes) {
  Reallocate(bytes_ - bytes, this->bytes().subspan(bytes));
  account_->Release(bytes);
}

void Buffer::Reallocate(std::uint32_t bytes, std::span<const std::uint8_t> kept) {
  auto data = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
  std::ranges::copy(kept, data.get());
  data_ = std::move(data);
  bytes_ = bytes;
}

}  // namespace bulkhead::sketch
