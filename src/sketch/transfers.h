// Decides which bytes may move between the guest, its blobs and its results, and moves them: the
// capacity rules of the blob store. Not thread-safe: under the hub's lock.
//
// Within one blob nothing overtakes: a write waits behind earlier waiting writes even if it would
// fit, and a direct transfer (stream_read, stream_write) does too. Writers leave one chunk of the
// total free, so that a reader can always take bytes out.
#pragma once

#include <bulkhead/deadline.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sketch/blob.h"
#include "sketch/buffer.h"
#include "sketch/limits.h"
#include "sketch/operation.h"

namespace bulkhead::sketch {

class Transfers {
 public:
  explicit Transfers(const HubLimits& limits);

  // Bytes of one transfer at most.
  std::uint32_t chunk_bytes() const { return chunk_bytes_; }

  std::uint32_t pending_reads() const { return pending_reads_; }

  std::uint32_t pending_writes() const { return pending_writes_; }

  std::uint32_t live_blobs() const { return static_cast<std::uint32_t>(blobs_.size()); }

  const RetainedBytes& retained() const { return retained_; }

  // ---- blobs ----
  bool AdmitsBlob() const { return blobs_.size() < limits_.blobs; }

  std::shared_ptr<Blob> AddBlob();
  void RemoveBlob(const std::shared_ptr<Blob>& blob);

  // ---- operations ----
  // Before any byte is copied: whether a write of `bytes` may be held until there is room.
  bool AdmitsWrite(std::uint32_t bytes);

  bool AdmitsRead() const { return pending_reads_ < limits_.pending_reads; }

  Buffer Allocate(std::uint32_t bytes) { return {retained_, bytes}; }

  // From here on it waits; Drive completes it.
  void Enqueue(const std::shared_ptr<Operation>& transfer, Blob& blob);
  // Takes a transfer that ended otherwise out of its queue, with its bytes.
  void Withdraw(Operation& transfer);
  // Moves what can move, until nothing can. `done` hears of each transfer that is: it waits no
  // longer, and a read has its bytes in its buffer.
  using Done = std::function<void(Operation&)>;
  void Drive(MonotonicTime now, const Done& done);

  // ---- direct transfers ----
  // How many of `bytes` may be appended to or taken from the blob now.
  std::uint32_t WritableNow(Blob& blob, std::uint32_t bytes);
  std::uint32_t ReadableNow(const Blob& blob, std::uint32_t bytes) const;

 private:
  bool DriveOne(Blob& blob, MonotonicTime now, const Done& done);
  bool TryRead(Blob& blob, MonotonicTime now);
  bool TryWrite(Blob& blob, MonotonicTime now);
  // How many bytes this blob's content may grow by; the total is not looked at.
  std::uint64_t BlobRoom(const Blob& blob) const;
  // How many more bytes of guest input may be held at all.
  std::uint64_t InputRoom() const;
  // Gives back what partly read segments hold for nothing.
  void TrimAll();

  const HubLimits limits_;
  const std::uint32_t chunk_bytes_;
  RetainedBytes retained_;
  std::vector<std::shared_ptr<Blob>> blobs_;
  std::uint32_t pending_reads_ = 0;
  std::uint32_t pending_writes_ = 0;
  std::uint64_t pending_write_bytes_ = 0;
};

}  // namespace bulkhead::sketch
