// Everything a run's operations and resources are, and each decision about them: the hub without
// threads, clocks or system calls. Not thread-safe: hub.h holds the lock, tells the time, waits,
// and notifies whom TakeWoken names once the lock is released.
#pragma once

#include <bulkhead/deadline.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "sketch/abi.h"
#include "sketch/limits.h"
#include "sketch/operation.h"
#include "sketch/resource_table.h"
#include "sketch/transfers.h"
#include "wasi/guest_memory.h"

namespace bulkhead::sketch {

// Why a call ends the guest thread instead of answering it.
enum class Trap : std::uint8_t {
  kUnknownKind,    // operation_submit of a kind the contract does not have
  kInvalidLength,  // negative, or above kTransferBytesMax
  kOutOfBounds,    // a range outside the guest's memory
};

template <class T>
using Answer = tl::expected<T, Trap>;

struct Submission {
  Owner owner = kRootOwner;
  Kind kind = Kind::kSyntheticYield;
  std::uint64_t a0 = 0;
  std::uint64_t a1 = 0;
  wasi::GuestMemory memory;
  MonotonicTime now;
};

struct StreamCall {
  Owner owner = kRootOwner;
  Token blob = 0;
  std::uint32_t address = 0;
  std::int32_t bytes = 0;
  wasi::GuestMemory memory;
  MonotonicTime now;
};

// What became of the output, for the run's report.
struct OutputFacts {
  bool created = false;         // exactly one commit succeeded: the file is complete
  bool limit_hit = false;       // a commit was larger than the grant permits
  bool cleanup_failed = false;  // a failed commit may have left bytes in the file
};

// Counts at one moment. All of the first group are zero once the hub has finished.
struct HubSnapshot {
  std::uint32_t live_operations = 0;  // uncollected results included
  std::uint32_t live_resources = 0;
  std::uint32_t live_blobs = 0;
  std::uint32_t pending_reads = 0;
  std::uint32_t pending_writes = 0;
  std::uint32_t live_timers = 0;  // sleeps and armed idle timeouts
  std::uint32_t commit_jobs = 0;
  std::uint64_t retained_bytes = 0;

  std::uint64_t retained_bytes_peak = 0;
  std::uint32_t committed_outputs = 0;
  std::uint32_t tombstones = 0;
};

class HubState {
 public:
  using OperationPtr = std::shared_ptr<Operation>;

  HubState(const HubLimits& limits, bool output_granted)
      : limits_(limits), output_granted_(output_granted), transfers_(limits) {}

  // ---- guest calls; none waits ----
  // A token, a packed result, 1, or kRefused, as the kind has it.
  std::int64_t Submit(const Submission& call);
  std::int64_t Poll(Owner owner, Token token);
  bool Cancel(Owner owner, Token token, MonotonicTime now);
  // The caller is about to wait for it: gives deferred operations their effect, arms the idle
  // timeout of transfers. nullptr: not the caller's.
  OperationPtr Suspend(Owner owner, Token token, MonotonicTime now);
  Answer<std::int32_t> StreamRead(const StreamCall& call);
  Answer<std::int32_t> StreamWrite(const StreamCall& call);
  // Releases the blob; what waits for it is closed.
  bool CloseBlob(Owner owner, Token blob, MonotonicTime now);

  // A hash update in two halves, so that the caller hashes without the lock. nullopt: refused.
  struct HashUpdate {
    OperationPtr operation;
    std::shared_ptr<Sha256> hash;
    const std::uint8_t* bytes;  // guest memory
    std::uint32_t size;
  };

  std::optional<HashUpdate> BeginHashUpdate(const Submission& call);
  void Complete(Operation& operation, std::uint64_t payload);

  // Ends a pending operation that cannot go on.
  void Reject(Operation& operation, MonotonicTime now);
  // Lets waiting transfers use memory that was given back.
  void Drive(MonotonicTime now);

  // ---- ends ----
  // Every pending operation ends with `status`, every resource is gone, nothing new is admitted.
  // Results stay collectable. The first call counts.
  void Revoke(OperationStatus status, MonotonicTime now);
  void ExitOwner(Owner owner, MonotonicTime now);
  // No guest thread is left: drops what nobody can collect any more.
  void Clear();

  // ---- time ----
  std::optional<MonotonicTime> NextEnd() const;
  void Expire(MonotonicTime now);

  // ---- the commit job ----
  struct Commit {
    OperationPtr operation;
    std::vector<Buffer> pieces;
  };

  // There is at most one: it holds the only output. nullopt: none waits to be started.
  std::optional<Commit> StartCommit();

  // No thread can run the queued one.
  void RejectCommit(MonotonicTime now) {
    const OperationPtr operation = commit_->operation;  // resets commit_
    Reject(*operation, now);
  }

  // The file is written. false: the operation ended meanwhile, and the file must not stay.
  [[nodiscard]] bool CompleteCommit(Commit& commit, MonotonicTime now);
  // The file is emptied again, or `cleaned` is false.
  void FailCommit(Commit& commit, bool too_large, bool cleaned, MonotonicTime now);

  bool commit_queued() const { return commit_ && !commit_->started; }

  bool revoked() const { return revoked_; }

  OutputFacts output_facts() const { return output_facts_; }

  HubSnapshot Snapshot() const;

  // The operations that ended while a thread waits for them, linked by next_woken; to be notified
  // after the lock.
  OperationPtr TakeWoken() { return std::exchange(woken_, nullptr); }

 private:
  // ---- hub_submit.cc: one function per kind ----
  std::int64_t SubmitNew(const Submission& call);
  std::int64_t CreateSynthetic(const Submission& call);
  std::int64_t TargetSynthetic(const Submission& call);
  std::int64_t CreateBlob(const Submission& call);
  std::int64_t WriteBlob(const Submission& call);
  std::int64_t ReadBlob(const Submission& call);
  std::int64_t CollectRead(const Submission& call);
  std::int64_t SealBlob(const Submission& call);
  std::int64_t CommitOutput(const Submission& call);
  std::int64_t GrantOutput(const Submission& call);
  std::int64_t Sleep(const Submission& call);
  std::int64_t CreateHash(const Submission& call);
  std::int64_t FinaliseHash(const Submission& call);
  bool AbandonTransfer(const Submission& call);
  bool AbandonHash(const Submission& call);
  bool AbandonHashOperation(const Submission& call);
  bool MayCommit(Owner owner, Token blob);

  // ---- hub_state.cc ----
  // Empty: not the owner's. As long-lived as the operation's place in the table.
  const OperationPtr& FindOperation(Owner owner, Token token) const;

  bool HasSlot() const { return operations_.size() < kOperationsMax; }

  // Needs a slot.
  OperationPtr AddOperation(const Submission& call, Token target = 0);
  // With its buffers, whatever its state.
  void DropOperation(Operation& operation);
  // The one place where a pending operation ends: the first end counts. What else it held is given
  // back; the caller drives the transfers.
  void End(Operation& operation, OperationStatus status, std::uint64_t payload = 0);
  void ActDeferred(Operation& operation);
  void RemoveResource(Token token, OperationStatus status);

  // The commit that is queued or running.
  struct ActiveCommit {
    OperationPtr operation;
    Token blob = 0;
    Token output = 0;
    bool started = false;
  };

  const HubLimits limits_;
  const bool output_granted_;
  Transfers transfers_;  // outlives all buffers
  ResourceTable resources_;
  std::map<Token, OperationPtr> operations_;  // in the order of submission
  std::optional<ActiveCommit> commit_;
  std::optional<Token> output_;  // the handle, once asked for
  OutputFacts output_facts_;
  bool revoked_ = false;
  OperationPtr woken_;  // linked, because ending an operation must not need memory
};

}  // namespace bulkhead::sketch
