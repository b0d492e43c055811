#include "sketch/blob.h"

#include <algorithm>

#include "sketch/abi.h"

namespace bulkhead::sketch {
namespace {

// Bounds what one small write copies while it is merged.
constexpr std::uint32_t kSegmentBytes = kTransferBytesMax;

}  // namespace

void Blob::Append(Buffer bytes, MonotonicTime now) {
  const std::uint32_t more = bytes.size();
  if (more == 0) {
    return;
  }
  if (!segments_.empty() && segments_.back().size() + more <= kSegmentBytes) {
    segments_.back().Absorb(std::move(bytes));
  } else {
    segments_.push_back(std::move(bytes));
  }
  allocated_ += more;
  last_moved_ = now;
}

std::span<std::uint8_t> Blob::Extend(std::uint32_t bytes, MonotonicTime now) {
  std::span<std::uint8_t> room;
  if (!segments_.empty() && segments_.back().size() + bytes <= kSegmentBytes) {
    room = segments_.back().Grow(bytes);
  } else {
    segments_.emplace_back(account_, bytes);
    room = segments_.back().bytes();
  }
  allocated_ += bytes;
  last_moved_ = now;
  return room;
}

bool Blob::TakeCopies(std::uint32_t bytes) const {
  return bytes != 0 && (consumed_ != 0 || segments_.front().size() != bytes);
}

Buffer Blob::Take(std::uint32_t bytes, MonotonicTime now) {
  if (bytes == 0) {
    return {};
  }
  if (!TakeCopies(bytes)) {
    Buffer whole = std::move(segments_.front());
    segments_.pop_front();
    allocated_ -= bytes;
    last_moved_ = now;
    return whole;
  }
  Buffer taken(account_, bytes);
  std::uint8_t* target = taken.bytes().data();
  Drain(bytes, now, [&target](std::span<const std::uint8_t> piece) {
    target = std::ranges::copy(piece, target).out;
  });
  return taken;
}

void Blob::Drain(std::uint32_t bytes, MonotonicTime now,
                 const std::function<void(std::span<const std::uint8_t>)>& take) {
  if (bytes != 0) {
    last_moved_ = now;
  }
  while (bytes != 0) {
    const std::span<const std::uint8_t> first = segments_.front().bytes();
    const std::uint32_t piece =
        std::min(bytes, static_cast<std::uint32_t>(first.size()) - consumed_);
    take(first.subspan(consumed_, piece));
    bytes -= piece;
    consumed_ += piece;
    if (consumed_ == first.size()) {
      allocated_ -= consumed_;
      consumed_ = 0;
      segments_.pop_front();
    }
  }
}

std::vector<Buffer> Blob::TakeAll() {
  Trim();
  std::vector<Buffer> all(std::make_move_iterator(segments_.begin()),
                          std::make_move_iterator(segments_.end()));
  segments_.clear();
  allocated_ = 0;
  return all;
}

void Blob::Trim() {
  if (consumed_ != 0) {
    segments_.front().DropFront(consumed_);
    allocated_ -= consumed_;
    consumed_ = 0;
  }
}

}  // namespace bulkhead::sketch
