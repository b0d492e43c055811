// A queue of bytes that one guest thread fills and empties, and the transfers that wait at either
// end, in order. Knows no limits (transfers.h does). Not thread-safe: under the hub's lock.
#pragma once

#include <bulkhead/deadline.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sketch/buffer.h"

namespace bulkhead::sketch {

struct Operation;

class Blob {
 public:
  explicit Blob(RetainedBytes& account) : account_(account) {}

  std::uint64_t size() const { return allocated_ - consumed_; }

  // What the content occupies: more than its size while a part of the first segment is read.
  std::uint64_t allocated() const { return allocated_; }

  bool sealed() const { return sealed_; }

  void Seal() { sealed_ = true; }

  // When bytes moved through it last.
  MonotonicTime last_moved() const { return last_moved_; }

  // ---- producing ----
  void Append(Buffer bytes, MonotonicTime now);
  // Where `bytes` more bytes of content are to be written at once.
  std::span<std::uint8_t> Extend(std::uint32_t bytes, MonotonicTime now);

  // ---- consuming; `bytes` at most size() ----
  // Whether Take would need memory of its own beside the content's.
  bool TakeCopies(std::uint32_t bytes) const;
  Buffer Take(std::uint32_t bytes, MonotonicTime now);
  // Hands out the first `bytes` piece by piece and drops them.
  void Drain(std::uint32_t bytes, MonotonicTime now,
             const std::function<void(std::span<const std::uint8_t>)>& take);
  std::vector<Buffer> TakeAll();
  // Gives back what is read of the first segment.
  void Trim();

  // Transfers that wait, first come first served.
  std::deque<std::shared_ptr<Operation>> reads;
  std::deque<std::shared_ptr<Operation>> writes;

 private:
  RetainedBytes& account_;
  // Small pieces are merged, so that any two neighbours together exceed kSegmentBytes and the
  // bookkeeping stays small beside the content.
  std::deque<Buffer> segments_;
  std::uint64_t allocated_ = 0;
  std::uint32_t consumed_ = 0;  // of the first segment
  bool sealed_ = false;
  MonotonicTime last_moved_ = MonotonicTime::min();
};

}  // namespace bulkhead::sketch
