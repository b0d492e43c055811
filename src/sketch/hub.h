// The operations and resources of one run, as its guest threads call them. One per run, owned by
// whoever runs the guest; any thread may call anything unless said otherwise.
//
// Lock rule: every decision is made by HubState under one lock, copies between guest and host
// memory included (at most 64 KiB each); system calls, hashing and notifications come after it.
// Only Yield waits, and a completion, cancellation, timeout or revocation wakes it.
//
// Nothing a guest passes makes a call fail on our side: it is refused, or the answer is a Trap. The
// two service threads start when first needed; where the system gives no thread, what needs it is
// refused.
#pragma once

#include <bulkhead/result.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "sketch/commit_job.h"
#include "sketch/hub_state.h"
#include "sketch/service_thread.h"
#include "wasi/guest_memory.h"

namespace bulkhead::sketch {

struct HubConfig {
  HubLimits limits = {};
  std::optional<OutputGrant> output = std::nullopt;  // none: the guest may not produce a file
  CommitHooks hooks = {};
};

class Hub {
 public:
  // kInvalidArgument for limits out of proportion. `clock` outlives the hub.
  static Result<std::unique_ptr<Hub>> Create(HubConfig config, const Clock& clock);

  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  // Like Finish.
  ~Hub();

  // ---- what the guest imports; `owner` is the calling guest thread ----
  // A token, a packed result or 1; kRefused and kPackedError as the kind has it.
  Answer<std::int64_t> Submit(Owner owner, std::int32_t kind, std::uint64_t a0, std::uint64_t a1,
                              const wasi::GuestMemory& memory);
  // The packed result, which this consumes unless it is pending.
  std::int64_t Poll(Owner owner, Token operation);
  // Waits until the operation has ended: 1. Not the caller's: -1.
  std::int32_t Yield(Owner owner, Token token);
  // 1 if it is the caller's: it has ended now, cancelled or as it was.
  std::int32_t Cancel(Owner owner, Token operation);
  // Bytes moved, which may be fewer than asked for, or -1: refused. Neither waits.
  Answer<std::int32_t> StreamRead(Owner owner, Token blob, std::uint32_t address,
                                  std::int32_t bytes, const wasi::GuestMemory& memory);
  Answer<std::int32_t> StreamWrite(Owner owner, Token blob, std::uint32_t address,
                                   std::int32_t bytes, const wasi::GuestMemory& memory);
  // 0: released. 1: refused.
  std::int32_t StreamClose(Owner owner, Token blob);

  // ---- the run ----
  // Ends every operation with `status`, takes every resource away and wakes whoever waits. The
  // first call counts; later submissions are refused, results stay collectable.
  void Revoke(OperationStatus status);
  // A guest thread is gone, with everything only it could use.
  void OwnerExited(Owner owner);
  // After the last guest thread: revokes (kClosed, unless done before), joins the service threads
  // (which takes as long as a write or fsync under way) and drops what is left. All live counts of
  // Snapshot are zero afterwards. One thread at a time.
  void Finish();

  OutputFacts output_facts() const;
  HubSnapshot Snapshot() const;

  // A clock that is not real moved: looks at the deadlines again.
  void ClockChanged();

 private:
  class Turn;

  Hub(HubConfig config, const Clock& clock);

  // The bodies of the service threads.
  void RunTimers();
  void RunCommits();
  void RunCommit(HubState::Commit commit);

  Answer<std::int64_t> UpdateHash(const Submission& call);

  const Clock& clock_;
  const std::optional<OutputGrant> output_;
  const CommitHooks hooks_;
  mutable std::mutex mutex_;  // guards the rest
  HubState state_;
  bool finishing_ = false;
  std::condition_variable timers_changed_;
  std::condition_variable commit_queued_;
  // Apart, so that no sleep waits for a disk.
  ServiceThread timers_;
  ServiceThread commits_;
};

}  // namespace bulkhead::sketch
