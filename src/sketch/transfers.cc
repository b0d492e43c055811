#include "sketch/transfers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace bulkhead::sketch {
namespace {

std::uint64_t Left(std::uint64_t limit, std::uint64_t used) {
  return limit - std::min(limit, used);
}

}  // namespace

Transfers::Transfers(const HubLimits& limits)
    : limits_(limits), chunk_bytes_(std::min(limits.chunk_bytes, kTransferBytesMax)) {}

std::shared_ptr<Blob> Transfers::AddBlob() {
  return blobs_.emplace_back(std::make_shared<Blob>(retained_));
}

void Transfers::RemoveBlob(const std::shared_ptr<Blob>& blob) {
  BH_CHECK(blob->reads.empty() && blob->writes.empty());
  std::erase(blobs_, blob);
}

bool Transfers::AdmitsWrite(std::uint32_t bytes) {
  if (bytes > chunk_bytes_ || pending_writes_ >= limits_.pending_writes ||
      bytes > Left(limits_.blobs_bytes, pending_write_bytes_)) {
    return false;
  }
  if (bytes > InputRoom()) {
    TrimAll();
  }
  return bytes <= InputRoom();
}

void Transfers::Enqueue(const std::shared_ptr<Operation>& transfer, Blob& blob) {
  if (transfer->kind == Kind::kBlobRead) {
    blob.reads.push_back(transfer);
    ++pending_reads_;
  } else {
    blob.writes.push_back(transfer);
    ++pending_writes_;
    pending_write_bytes_ += transfer->buffer.size();
  }
  transfer->blob = &blob;
}

void Transfers::Withdraw(Operation& transfer) {
  const auto is_it = [&transfer](const auto& queued) { return queued.get() == &transfer; };
  Blob* blob = std::exchange(transfer.blob, nullptr);
  if (transfer.kind == Kind::kBlobRead) {
    std::erase_if(blob->reads, is_it);
    --pending_reads_;
  } else {
    std::erase_if(blob->writes, is_it);
    --pending_writes_;
    pending_write_bytes_ -= transfer.buffer.size();
    transfer.buffer.Free();
  }
}

void Transfers::Drive(MonotonicTime now, const Done& done) {
  // Each move may make room for another, also in a blob that was looked at before.
  for (bool moved = true; moved;) {
    moved = false;
    for (const std::shared_ptr<Blob>& blob : blobs_) {
      moved = DriveOne(*blob, now, done) || moved;
    }
  }
}

bool Transfers::DriveOne(Blob& blob, MonotonicTime now, const Done& done) {
  bool moved = false;
  while (true) {
    std::deque<std::shared_ptr<Operation>>* queue = nullptr;
    if (!blob.reads.empty() && TryRead(blob, now)) {
      queue = &blob.reads;
      --pending_reads_;
    } else if (!blob.writes.empty() && TryWrite(blob, now)) {
      queue = &blob.writes;
      --pending_writes_;
    } else {
      return moved;
    }
    const std::shared_ptr<Operation> transfer = std::move(queue->front());
    queue->pop_front();
    transfer->blob = nullptr;
    done(*transfer);
    moved = true;
  }
}

bool Transfers::TryRead(Blob& blob, MonotonicTime now) {
  Operation& read = *blob.reads.front();
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(read.bytes_max, blob.size()));
  if (bytes == 0 && !blob.sealed()) {
    return false;
  }
  if (blob.TakeCopies(bytes)) {
    if (bytes > Left(limits_.retained_bytes, retained_.now())) {
      TrimAll();
    }
    if (bytes > Left(limits_.retained_bytes, retained_.now())) {
      return false;  // until results are collected
    }
  }
  read.buffer = blob.Take(bytes, now);
  return true;
}

bool Transfers::TryWrite(Blob& blob, MonotonicTime now) {
  Operation& write = *blob.writes.front();
  const std::uint32_t bytes = write.buffer.size();
  if (bytes > BlobRoom(blob)) {
    TrimAll();
  }
  if (bytes > BlobRoom(blob)) {
    return false;
  }
  pending_write_bytes_ -= bytes;
  blob.Append(std::move(write.buffer), now);
  return true;
}

std::uint32_t Transfers::WritableNow(Blob& blob, std::uint32_t bytes) {
  if (!blob.writes.empty()) {
    return 0;
  }
  const std::uint64_t wanted = std::min(bytes, chunk_bytes_);
  const auto room = [this, &blob] { return std::min(BlobRoom(blob), InputRoom()); };
  if (wanted > room()) {
    TrimAll();
  }
  return static_cast<std::uint32_t>(std::min(wanted, room()));
}

std::uint32_t Transfers::ReadableNow(const Blob& blob, std::uint32_t bytes) const {
  if (!blob.reads.empty()) {
    return 0;
  }
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::min(bytes, chunk_bytes_), blob.size()));
}

std::uint64_t Transfers::BlobRoom(const Blob& blob) const {
  std::uint64_t all = 0;
  for (const std::shared_ptr<Blob>& each : blobs_) {
    all += each->allocated();
  }
  return std::min(Left(limits_.blob_bytes, blob.allocated()), Left(limits_.blobs_bytes, all));
}

std::uint64_t Transfers::InputRoom() const {
  return Left(limits_.retained_bytes - chunk_bytes_, retained_.now());
}

void Transfers::TrimAll() {
  for (const std::shared_ptr<Blob>& blob : blobs_) {
    blob->Trim();
  }
}

}  // namespace bulkhead::sketch
