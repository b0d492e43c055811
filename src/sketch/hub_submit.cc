// operation_submit, kind by kind. The rule of refusal: whatever is wrong with the arguments or
// exhausted answers kRefused and changes nothing; what is only known later is a status. What needs
// memory comes before the operation exists.

#include <utility>

#include "base/check.h"
#include "sketch/hub_state.h"
#include "sketch/shared_copy.h"

namespace bulkhead::sketch {
namespace {

std::int64_t TokenAnswer(Token token) {
  return static_cast<std::int64_t>(token);
}

std::int64_t TokenAnswer(const std::shared_ptr<Operation>& operation) {
  return TokenAnswer(operation->token);
}

// A size and an address, both inside the guest's memory.
std::optional<GuestRange> CheckedRange(const Submission& call) {
  const GuestRange range = GuestRange::Unpack(call.a1);
  if (!call.memory.Contains(range.address, range.bytes)) {
    return std::nullopt;
  }
  return range;
}

}  // namespace

std::int64_t HubState::Submit(const Submission& call) {
  switch (call.kind) {
    // What needs no slot, and works on what is left after a revocation too.
    case Kind::kCollectRead:
      return CollectRead(call);
    case Kind::kAbandonTransfer:
      return AbandonTransfer(call) ? 1 : kRefused;
    case Kind::kAbandonBlob:
      return call.a1 == 0 && CloseBlob(call.owner, call.a0, call.now) ? 1 : kRefused;
    case Kind::kAbandonHash:
      return AbandonHash(call) ? 1 : kRefused;
    case Kind::kAbandonHashOperation:
      return AbandonHashOperation(call) ? 1 : kRefused;
    case Kind::kHashFinalise:
      return FinaliseHash(call);
    case Kind::kOutputGrant:
      return GrantOutput(call);
    case Kind::kSyntheticYield:
    case Kind::kSyntheticCreate:
    case Kind::kSyntheticUse:
    case Kind::kSyntheticClose:
    case Kind::kBlobCreate:
    case Kind::kBlobWrite:
    case Kind::kBlobRead:
    case Kind::kBlobSeal:
    case Kind::kOutputCommit:
    case Kind::kClockSleep:
    case Kind::kHashCreate:
    case Kind::kHashUpdate:
      break;
  }
  return revoked_ || !HasSlot() ? kRefused : SubmitNew(call);
}

// What becomes an operation; there is a slot for it.
std::int64_t HubState::SubmitNew(const Submission& call) {
  switch (call.kind) {
    case Kind::kSyntheticYield:
      return TokenAnswer(AddOperation(call));
    case Kind::kSyntheticCreate:
      return CreateSynthetic(call);
    case Kind::kSyntheticUse:
    case Kind::kSyntheticClose:
      return TargetSynthetic(call);
    case Kind::kBlobCreate:
      return CreateBlob(call);
    case Kind::kBlobWrite:
      return WriteBlob(call);
    case Kind::kBlobRead:
      return ReadBlob(call);
    case Kind::kBlobSeal:
      return SealBlob(call);
    case Kind::kOutputCommit:
      return CommitOutput(call);
    case Kind::kClockSleep:
      return Sleep(call);
    case Kind::kHashCreate:
      return CreateHash(call);
    case Kind::kHashUpdate:  // BeginHashUpdate
    case Kind::kCollectRead:
    case Kind::kOutputGrant:
    case Kind::kAbandonTransfer:
    case Kind::kAbandonBlob:
    case Kind::kHashFinalise:
    case Kind::kAbandonHash:
    case Kind::kAbandonHashOperation:
      break;
  }
  BH_CHECK(false);
  return kRefused;
}

// ---- synthetic resources ----

std::int64_t HubState::CreateSynthetic(const Submission& call) {
  if (call.a0 > 1 || call.a1 > kRightsMax || resources_.full()) {
    return kRefused;
  }
  const Token token =
      resources_.Add({.owner = call.owner,
                      .shareable = call.a0 == 1,
                      .visible = false,
                      .body = SyntheticResource{static_cast<std::uint8_t>(call.a1)}});
  return TokenAnswer(AddOperation(call, token));
}

std::int64_t HubState::TargetSynthetic(const Submission& call) {
  const auto* resource = resources_.FindFor<SyntheticResource>(call.owner, call.a0);
  if (resource == nullptr) {
    return kRefused;
  }
  if (call.kind == Kind::kSyntheticUse && (call.a1 & ~std::uint64_t{resource->rights}) != 0) {
    return kRefused;
  }
  return TokenAnswer(AddOperation(call, call.a0));
}

// ---- blobs ----

std::int64_t HubState::CreateBlob(const Submission& call) {
  if (call.a0 != 0 || call.a1 != 0 || resources_.full() || !transfers_.AdmitsBlob()) {
    return kRefused;
  }
  const Token token =
      resources_.Add({.owner = call.owner, .visible = false, .body = transfers_.AddBlob()});
  return TokenAnswer(AddOperation(call, token));
}

std::int64_t HubState::WriteBlob(const Submission& call) {
  const auto* blob = resources_.FindFor<std::shared_ptr<Blob>>(call.owner, call.a0);
  const std::optional<GuestRange> range = CheckedRange(call);
  if (blob == nullptr || !range) {
    return kRefused;
  }
  if ((*blob)->sealed()) {
    const OperationPtr closed = AddOperation(call, call.a0);
    End(*closed, OperationStatus::kClosed);
    return TokenAnswer(closed);
  }
  if (!transfers_.AdmitsWrite(range->bytes)) {
    return kRefused;
  }
  Buffer input = transfers_.Allocate(range->bytes);
  CopyFromShared(input.bytes(), call.memory.base + range->address);
  const OperationPtr write = AddOperation(call, call.a0);
  write->buffer = std::move(input);
  transfers_.Enqueue(write, **blob);
  Drive(call.now);
  return TokenAnswer(write);
}

std::int64_t HubState::ReadBlob(const Submission& call) {
  const auto* blob = resources_.FindFor<std::shared_ptr<Blob>>(call.owner, call.a0);
  const bool committing = commit_ && commit_->blob == call.a0;
  if (blob == nullptr || committing || call.a1 == 0 || call.a1 > transfers_.chunk_bytes() ||
      !transfers_.AdmitsRead()) {
    return kRefused;
  }
  const OperationPtr read = AddOperation(call, call.a0);
  read->bytes_max = static_cast<std::uint32_t>(call.a1);
  transfers_.Enqueue(read, **blob);
  Drive(call.now);
  return TokenAnswer(read);
}

std::int64_t HubState::CollectRead(const Submission& call) {
  const OperationPtr read = FindOperation(call.owner, call.a0);
  const std::optional<GuestRange> destination = CheckedRange(call);
  if (!read || read->kind != Kind::kBlobRead || !destination) {
    return kPackedError;
  }
  if (read->pending()) {
    return Packed(0, OperationStatus::kPending);
  }
  const std::uint32_t bytes = read->buffer.size();
  if (bytes > destination->bytes) {
    return kPackedError;
  }
  CopyToShared(call.memory.base + destination->address, read->buffer.bytes());
  const OperationStatus status = read->status;
  DropOperation(*read);
  Drive(call.now);
  return Packed(bytes, status);
}

std::int64_t HubState::SealBlob(const Submission& call) {
  const auto* found = resources_.FindFor<std::shared_ptr<Blob>>(call.owner, call.a0);
  if (found == nullptr || call.a1 != 0) {
    return kRefused;
  }
  const OperationPtr seal = AddOperation(call, call.a0);
  if ((*found)->sealed()) {
    End(*seal, OperationStatus::kRejected);
    return TokenAnswer(seal);
  }
  const std::shared_ptr<Blob> blob = *found;
  blob->Seal();
  while (!blob->writes.empty()) {
    const OperationPtr write = blob->writes.front();
    End(*write, OperationStatus::kClosed);
  }
  Complete(*seal, 1);
  Drive(call.now);
  return TokenAnswer(seal);
}

bool HubState::AbandonTransfer(const Submission& call) {
  const OperationPtr transfer = FindOperation(call.owner, call.a0);
  if (!transfer || !transfer->is_transfer() || call.a1 != 0) {
    return false;
  }
  DropOperation(*transfer);
  Drive(call.now);
  return true;
}

// ---- the output ----

std::int64_t HubState::GrantOutput(const Submission& call) {
  if (revoked_ || !output_granted_ || output_facts_.created || call.owner != kRootOwner ||
      call.a0 != 0 || call.a1 != 0) {
    return kRefused;
  }
  if (!output_) {
    if (resources_.full()) {
      return kRefused;
    }
    output_ = resources_.Add({.owner = call.owner, .body = OutputHandle{}});
  }
  return TokenAnswer(*output_);
}

std::int64_t HubState::CommitOutput(const Submission& call) {
  if (resources_.FindFor<OutputHandle>(call.owner, call.a1) == nullptr) {
    return kRefused;
  }
  const OperationPtr operation = AddOperation(call, call.a0);
  if (!MayCommit(call.owner, call.a0)) {
    End(*operation, OperationStatus::kRejected);
    return TokenAnswer(operation);
  }
  commit_ = ActiveCommit{operation, call.a0, call.a1};
  return TokenAnswer(operation);
}

bool HubState::MayCommit(Owner owner, Token blob) {
  const auto* found = resources_.FindFor<std::shared_ptr<Blob>>(owner, blob);
  return found != nullptr && (*found)->sealed() && (*found)->reads.empty() &&
         (*found)->writes.empty() && !commit_;
}

// ---- time ----

std::int64_t HubState::Sleep(const Submission& call) {
  if (call.a0 > kSleepMsMax || call.a1 != 0) {
    return kRefused;
  }
  const OperationPtr sleep = AddOperation(call);
  sleep->wakes_at = call.now + std::chrono::milliseconds(call.a0);
  return TokenAnswer(sleep);
}

// ---- hashes ----

std::int64_t HubState::CreateHash(const Submission& call) {
  if (resources_.full()) {
    return kRefused;
  }
  const Token token = resources_.Add({.owner = call.owner, .body = std::make_shared<Sha256>()});
  const OperationPtr create = AddOperation(call, token);
  Complete(*create, token);
  return TokenAnswer(create);
}

std::optional<HubState::HashUpdate> HubState::BeginHashUpdate(const Submission& call) {
  const auto* hash = resources_.FindFor<std::shared_ptr<Sha256>>(call.owner, call.a0);
  const std::optional<GuestRange> range = CheckedRange(call);
  if (revoked_ || !HasSlot() || hash == nullptr || !range || range->bytes > kTransferBytesMax) {
    return std::nullopt;
  }
  return HashUpdate{AddOperation(call, call.a0), *hash, call.memory.base + range->address,
                    range->bytes};
}

std::int64_t HubState::FinaliseHash(const Submission& call) {
  const auto* hash = resources_.FindFor<std::shared_ptr<Sha256>>(call.owner, call.a0);
  const std::optional<GuestRange> destination = CheckedRange(call);
  if (hash == nullptr || !destination || destination->bytes != kDigestBytes) {
    return kPackedError;
  }
  CopyToShared(call.memory.base + destination->address, (*hash)->Finish());
  RemoveResource(call.a0, OperationStatus::kClosed);
  return 1;
}

bool HubState::AbandonHash(const Submission& call) {
  if (call.a1 != 0 || resources_.FindFor<std::shared_ptr<Sha256>>(call.owner, call.a0) == nullptr) {
    return false;
  }
  RemoveResource(call.a0, OperationStatus::kClosed);
  return true;
}

// Nobody knows what a hash contains whose update was never collected, nor the name of one whose
// creation was not: it goes with the operation.
bool HubState::AbandonHashOperation(const Submission& call) {
  const OperationPtr operation = FindOperation(call.owner, call.a0);
  if (call.a1 != 0 || !operation ||
      (operation->kind != Kind::kHashCreate && operation->kind != Kind::kHashUpdate)) {
    return false;
  }
  const Token hash = operation->target;
  DropOperation(*operation);
  if (resources_.FindFor<std::shared_ptr<Sha256>>(call.owner, hash) != nullptr) {
    RemoveResource(hash, OperationStatus::kClosed);
  }
  return true;
}

}  // namespace bulkhead::sketch
