#include "sketch/commit_job.h"

#include <unistd.h>

#include <cerrno>
#include <span>

namespace bulkhead::sketch {
namespace {

int Injected(const std::function<int()>& hook) {
  return hook ? hook() : 0;
}

// Runs a system call until no signal interrupts it; answers its result.
template <class Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) {
    result = call();
  }
  return result;
}

CommitResult WritePiece(const CommitJob& job, std::span<const std::uint8_t> piece, off_t offset) {
  if (Injected(job.hooks.before_write) != 0) {
    return CommitResult::kFailed;
  }
  while (!piece.empty()) {
    const ssize_t put = Uninterrupted(
        [&] { return pwrite(job.grant.file.get(), piece.data(), piece.size(), offset); });
    if (put <= 0) {
      return put < 0 && errno == EFBIG ? CommitResult::kTooLarge : CommitResult::kFailed;
    }
    piece = piece.subspan(static_cast<std::size_t>(put));
    offset += put;
  }
  return CommitResult::kWritten;
}

CommitResult WritePieces(const CommitJob& job, std::vector<Buffer>& pieces) {
  off_t offset = 0;
  for (Buffer& piece : pieces) {
    if (!job.authorised()) {
      return CommitResult::kFailed;
    }
    const CommitResult result = WritePiece(job, piece.bytes(), offset);
    if (result != CommitResult::kWritten) {
      return result;
    }
    offset += piece.size();
    job.release(piece);
  }
  return CommitResult::kWritten;
}

}  // namespace

CommitResult WriteOutput(const CommitJob& job, std::vector<Buffer>& pieces) {
  std::uint64_t bytes = 0;
  for (const Buffer& piece : pieces) {
    bytes += piece.size();
  }
  if (bytes > job.grant.bytes_max) {
    return CommitResult::kTooLarge;
  }
  if (!DiscardOutput(job.grant)) {
    return CommitResult::kFailed;
  }
  const CommitResult written = WritePieces(job, pieces);
  if (written != CommitResult::kWritten) {
    return written;
  }
  if (Injected(job.hooks.before_fsync) != 0 ||
      Uninterrupted([&] { return fsync(job.grant.file.get()); }) != 0 ||
      Injected(job.hooks.before_complete) != 0) {
    return CommitResult::kFailed;
  }
  return CommitResult::kWritten;
}

bool DiscardOutput(const OutputGrant& grant) {
  return Uninterrupted([&] { return ftruncate(grant.file.get(), 0); }) == 0;
}

}  // namespace bulkhead::sketch
