// Host memory held for the guest, and the account that charges for it. Not thread-safe: every
// buffer of an account lives and dies under the lock of the account's owner.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace bulkhead::sketch {

// Bytes allocated for the guest, whoever holds them, until they are given back.
class RetainedBytes {
 public:
  std::uint64_t now() const { return now_; }

  std::uint64_t peak() const { return peak_; }

  void Charge(std::uint64_t bytes) {
    now_ += bytes;
    peak_ = peak_ < now_ ? now_ : peak_;
  }

  void Release(std::uint64_t bytes) { now_ -= bytes; }

 private:
  std::uint64_t now_ = 0;
  std::uint64_t peak_ = 0;
};

// Bytes of one allocation, exactly as large as its content. Charged from allocation to destruction;
// a move takes the charge along.
class Buffer {
 public:
  Buffer() = default;
  // Not initialised.
  Buffer(RetainedBytes& account, std::uint32_t bytes);

  Buffer(Buffer&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)),
        data_(std::move(other.data_)),
        bytes_(std::exchange(other.bytes_, 0)) {}

  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  ~Buffer() { Free(); }

  std::uint32_t size() const { return bytes_; }

  std::span<std::uint8_t> bytes() { return {data_.get(), bytes_}; }

  std::span<const std::uint8_t> bytes() const { return {data_.get(), bytes_}; }

  void Free() noexcept;

  // Makes room for `more` uninitialised bytes behind the content, and answers where they are.
  std::span<std::uint8_t> Grow(std::uint32_t more);
  // Takes over another buffer's content and charge.
  void Absorb(Buffer tail);
  void DropFront(std::uint32_t bytes);

 private:
  // An allocation of `bytes` that begins with `kept`.
  void Reallocate(std::uint32_t bytes, std::span<const std::uint8_t> kept);

  RetainedBytes* account_ = nullptr;
  std::unique_ptr<std::uint8_t[]> data_;
  std::uint32_t bytes_ = 0;
};

}  // namespace bulkhead::sketch
