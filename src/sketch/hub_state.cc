#include "sketch/hub_state.h"

#include <algorithm>

#include "base/check.h"
#include "sketch/shared_copy.h"

namespace bulkhead::sketch {
namespace {

constexpr std::int32_t kStreamRefused = -1;

// The checks that end the guest thread come first: they do not depend on the blob.
std::optional<Trap> CheckRange(const StreamCall& call) {
  if (call.bytes < 0 || static_cast<std::uint32_t>(call.bytes) > kTransferBytesMax) {
    return Trap::kInvalidLength;
  }
  if (!call.memory.Contains(call.address, static_cast<std::uint32_t>(call.bytes))) {
    return Trap::kOutOfBounds;
  }
  return std::nullopt;
}

}  // namespace

// ---- guest calls ----

std::int64_t HubState::Poll(Owner owner, Token token) {
  const OperationPtr& found = FindOperation(owner, token);
  if (!found || found->kind == Kind::kBlobRead) {
    return kPackedError;
  }
  if (found->pending()) {
    return Packed(0, OperationStatus::kPending);
  }
  const OperationPtr operation = found;  // it leaves the table before it is done with
  const std::int64_t result = Packed(operation->payload, operation->status);
  DropOperation(*operation);
  return result;
}

bool HubState::Cancel(Owner owner, Token token, MonotonicTime now) {
  const OperationPtr operation = FindOperation(owner, token);
  if (!operation) {
    return false;
  }
  End(*operation, OperationStatus::kCancelled);
  Drive(now);
  return true;
}

HubState::OperationPtr HubState::Suspend(Owner owner, Token token, MonotonicTime now) {
  OperationPtr operation = FindOperation(owner, token);
  if (!operation || !operation->pending()) {
    return operation;
  }
  if (operation->is_deferred()) {
    ActDeferred(*operation);
  } else if (operation->is_transfer() && !operation->armed_at) {
    operation->armed_at = now;
  }
  return operation;
}

Answer<std::int32_t> HubState::StreamRead(const StreamCall& call) {
  if (const std::optional<Trap> trap = CheckRange(call)) {
    return tl::unexpected(*trap);
  }
  const auto* found = resources_.FindFor<std::shared_ptr<Blob>>(call.owner, call.blob);
  if (found == nullptr || (commit_ && commit_->blob == call.blob)) {
    return kStreamRefused;
  }
  Blob& blob = **found;
  const std::uint32_t bytes = transfers_.ReadableNow(blob, static_cast<std::uint32_t>(call.bytes));
  std::uint8_t* target = call.memory.base + call.address;
  blob.Drain(bytes, call.now, [&target](std::span<const std::uint8_t> piece) {
    CopyToShared(target, piece);
    target += piece.size();
  });
  Drive(call.now);
  return static_cast<std::int32_t>(bytes);
}

Answer<std::int32_t> HubState::StreamWrite(const StreamCall& call) {
  if (const std::optional<Trap> trap = CheckRange(call)) {
    return tl::unexpected(*trap);
  }
  const auto* found = resources_.FindFor<std::shared_ptr<Blob>>(call.owner, call.blob);
  if (found == nullptr || (*found)->sealed()) {
    return kStreamRefused;
  }
  Blob& blob = **found;
  const std::uint32_t bytes = transfers_.WritableNow(blob, static_cast<std::uint32_t>(call.bytes));
  if (bytes != 0) {
    CopyFromShared(blob.Extend(bytes, call.now), call.memory.base + call.address);
    Drive(call.now);
  }
  return static_cast<std::int32_t>(bytes);
}

bool HubState::CloseBlob(Owner owner, Token blob, MonotonicTime now) {
  if (resources_.FindFor<std::shared_ptr<Blob>>(owner, blob) == nullptr) {
    return false;
  }
  RemoveResource(blob, OperationStatus::kClosed);
  Drive(now);
  return true;
}

void HubState::Complete(Operation& operation, std::uint64_t payload) {
  End(operation, OperationStatus::kCompleted, payload);
}

void HubState::Reject(Operation& operation, MonotonicTime now) {
  End(operation, OperationStatus::kRejected);
  Drive(now);
}

// ---- ends ----

void HubState::Revoke(OperationStatus status, MonotonicTime now) {
  if (std::exchange(revoked_, true)) {
    return;
  }
  for (const auto& [token, operation] : operations_) {
    End(*operation, status);
  }
  while (const std::optional<Token> token = resources_.First()) {
    RemoveResource(*token, status);
  }
  Drive(now);
}

void HubState::ExitOwner(Owner owner, MonotonicTime now) {
  std::vector<OperationPtr> left;
  for (const auto& [token, operation] : operations_) {
    if (operation->owner == owner) {
      left.push_back(operation);
    }
  }
  for (const OperationPtr& operation : left) {
    End(*operation, OperationStatus::kOwnerExited);
    DropOperation(*operation);
  }
  while (const std::optional<Token> token = resources_.FirstOf(owner)) {
    RemoveResource(*token, OperationStatus::kOwnerExited);
  }
  Drive(now);
}

void HubState::Clear() {
  BH_CHECK(revoked_);
  BH_CHECK(!commit_);
  while (!operations_.empty()) {
    DropOperation(*operations_.begin()->second);
  }
}

// ---- time ----

std::optional<MonotonicTime> HubState::NextEnd() const {
  std::optional<MonotonicTime> next;
  for (const auto& [token, operation] : operations_) {
    const std::optional<MonotonicTime> end = operation->EndsAt(limits_.idle_timeout);
    if (end && (!next || *end < *next)) {
      next = end;
    }
  }
  return next;
}

void HubState::Expire(MonotonicTime now) {
  for (const auto& [token, operation] : operations_) {
    const std::optional<MonotonicTime> end = operation->EndsAt(limits_.idle_timeout);
    if (!end || now < *end) {
      continue;
    }
    if (operation->kind == Kind::kClockSleep) {
      Complete(*operation, 1);
    } else {
      End(*operation, OperationStatus::kTimedOut);
    }
  }
  Drive(now);
}

// ---- the commit job ----

std::optional<HubState::Commit> HubState::StartCommit() {
  if (!commit_queued()) {
    return std::nullopt;
  }
  commit_->started = true;
  // Queued means that the blob is still there: whatever removes it ends the operation.
  Resource* blob = resources_.Find(commit_->blob);
  BH_CHECK(blob != nullptr);
  return Commit{commit_->operation, std::get<std::shared_ptr<Blob>>(blob->body)->TakeAll()};
}

bool HubState::CompleteCommit(Commit& commit, MonotonicTime now) {
  if (!commit.operation->pending()) {
    return false;
  }
  const ActiveCommit active = *std::exchange(commit_, std::nullopt);
  Complete(*active.operation, 1);
  output_facts_.created = true;
  commit.pieces.clear();
  RemoveResource(active.blob, OperationStatus::kClosed);
  RemoveResource(active.output, OperationStatus::kClosed);
  Drive(now);
  return true;
}

void HubState::FailCommit(Commit& commit, bool too_large, bool cleaned, MonotonicTime now) {
  const ActiveCommit active = *std::exchange(commit_, std::nullopt);
  output_facts_.limit_hit |= too_large;
  output_facts_.cleanup_failed |= !cleaned;
  commit.pieces.clear();
  End(*active.operation, OperationStatus::kRejected);
  if (resources_.Find(active.blob) != nullptr) {
    RemoveResource(active.blob, OperationStatus::kClosed);
  }
  Drive(now);
}

HubSnapshot HubState::Snapshot() const {
  HubSnapshot snapshot;
  snapshot.live_operations = static_cast<std::uint32_t>(operations_.size());
  snapshot.live_resources = resources_.size();
  snapshot.live_blobs = transfers_.live_blobs();
  snapshot.pending_reads = transfers_.pending_reads();
  snapshot.pending_writes = transfers_.pending_writes();
  snapshot.live_timers =
      static_cast<std::uint32_t>(std::ranges::count_if(operations_, [this](const auto& entry) {
        return entry.second->EndsAt(limits_.idle_timeout).has_value();
      }));
  snapshot.commit_jobs = commit_ ? 1 : 0;
  snapshot.retained_bytes = transfers_.retained().now();
  snapshot.retained_bytes_peak = transfers_.retained().peak();
  snapshot.committed_outputs = output_facts_.created ? 1 : 0;
  snapshot.tombstones = resources_.tombstones();
  return snapshot;
}

// ---- steps ----

const HubState::OperationPtr& HubState::FindOperation(Owner owner, Token token) const {
  static const OperationPtr kNone;
  const auto found = operations_.find(token);
  return found != operations_.end() && found->second->owner == owner ? found->second : kNone;
}

HubState::OperationPtr HubState::AddOperation(const Submission& call, Token target) {
  auto operation = std::make_shared<Operation>(call.owner, call.kind);
  operation->target = target;
  operations_.emplace(operation->token, operation);
  return operation;
}

void HubState::DropOperation(Operation& operation) {
  End(operation, OperationStatus::kCancelled);
  // Here and not by the destructor: a thread that still waits for it runs that without the lock.
  operation.buffer.Free();
  operations_.erase(operation.token);
}

void HubState::End(Operation& operation, OperationStatus status, std::uint64_t payload) {
  if (!operation.pending()) {
    return;
  }
  operation.status = status;
  operation.payload = payload;
  if (operation.blob != nullptr) {
    transfers_.Withdraw(operation);
  }
  const bool completed = status == OperationStatus::kCompleted;
  if (operation.kind == Kind::kBlobCreate || operation.kind == Kind::kSyntheticCreate) {
    if (!completed) {
      RemoveResource(operation.target, status);
    }
  } else if (commit_ && commit_->operation.get() == &operation && !commit_->started) {
    commit_.reset();
  }
  if (operation.parked) {
    operation.next_woken = std::exchange(woken_, operations_.at(operation.token));
  }
}

void HubState::ActDeferred(Operation& operation) {
  if (operation.kind == Kind::kSyntheticYield) {
    Complete(operation, 1);
    return;
  }
  if (operation.kind == Kind::kBlobCreate || operation.kind == Kind::kSyntheticCreate) {
    resources_.Find(operation.target)->visible = true;
    Complete(operation, operation.target);
    return;
  }
  // Looked up again: another thread may have closed it since.
  if (resources_.FindFor<SyntheticResource>(operation.owner, operation.target) == nullptr) {
    const bool closed = resources_.WasClosed(operation.owner, operation.target);
    End(operation, closed ? OperationStatus::kClosed : OperationStatus::kRejected);
    return;
  }
  if (operation.kind == Kind::kSyntheticClose) {
    RemoveResource(operation.target, OperationStatus::kClosed);
  }
  Complete(operation, 1);
}

void HubState::RemoveResource(Token token, OperationStatus status) {
  const Resource resource = resources_.Remove(token);
  if (output_ == token) {
    output_.reset();
  }
  if (commit_ && (commit_->blob == token || commit_->output == token)) {
    const OperationPtr commit = commit_->operation;  // End may reset commit_
    End(*commit, status);
  }
  const auto* blob = std::get_if<std::shared_ptr<Blob>>(&resource.body);
  if (blob == nullptr) {
    return;
  }
  while (!(*blob)->reads.empty()) {
    const OperationPtr read = (*blob)->reads.front();
    End(*read, status);
  }
  while (!(*blob)->writes.empty()) {
    const OperationPtr write = (*blob)->writes.front();
    End(*write, status);
  }
  transfers_.RemoveBlob(*blob);
}

void HubState::Drive(MonotonicTime now) {
  transfers_.Drive(now, [this](Operation& transfer) { Complete(transfer, 1); });
}

}  // namespace bulkhead::sketch
