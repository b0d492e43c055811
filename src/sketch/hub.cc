#include "sketch/hub.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "sketch/shared_copy.h"

namespace bulkhead::sketch {
namespace {

// Far deadlines are waited for piece by piece, so that adding them to the present cannot overflow.
constexpr std::chrono::nanoseconds kWaitMax = std::chrono::hours(1);

}  // namespace

// The lock, and after it the notifications of what was decided under it.
class Hub::Turn {
 public:
  explicit Turn(Hub& hub) : hub_(hub), lock_(hub.mutex_) {}

  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  ~Turn() {
    HubState::OperationPtr woken = hub_.state_.TakeWoken();
    lock_.unlock();
    while (woken) {
      woken->changed.notify_all();
      woken = std::exchange(woken->next_woken, nullptr);
    }
    if (notify_timers_) {
      hub_.timers_changed_.notify_one();
    }
    if (notify_commits_) {
      hub_.commit_queued_.notify_one();
    }
  }

  void NotifyTimers() { notify_timers_ = true; }

  void NotifyCommits() { notify_commits_ = true; }

 private:
  Hub& hub_;
  std::unique_lock<std::mutex> lock_;
  bool notify_timers_ = false;
  bool notify_commits_ = false;
};

Result<std::unique_ptr<Hub>> Hub::Create(HubConfig config, const Clock& clock) {
  BH_TRY(ValidateLimits(config.limits));
  return std::unique_ptr<Hub>(new Hub(std::move(config), clock));
}

Hub::Hub(HubConfig config, const Clock& clock)
    : clock_(clock),
      output_(std::move(config.output)),
      hooks_(std::move(config.hooks)),
      state_(config.limits, output_.has_value()),
      timers_([this] { RunTimers(); }),
      commits_([this] { RunCommits(); }) {}

Hub::~Hub() {
  Finish();
}

// ---- what the guest imports ----

Answer<std::int64_t> Hub::Submit(Owner owner, std::int32_t kind, std::uint64_t a0, std::uint64_t a1,
                                 const wasi::GuestMemory& memory) {
  const std::optional<Kind> available = AvailableKind(kind);
  if (!available) {
    if (!IsKnownKind(kind)) {
      return tl::unexpected(Trap::kUnknownKind);
    }
    return kRefused;
  }
  const Submission call{owner, *available, a0, a1, memory, clock_.Now()};
  if (call.kind == Kind::kHashUpdate) {
    return UpdateHash(call);
  }
  Turn turn(*this);
  if (call.kind == Kind::kClockSleep) {
    if (state_.revoked() || !timers_.EnsureRunning()) {
      return kRefused;
    }
    turn.NotifyTimers();
  }
  const std::int64_t answer = state_.Submit(call);
  if (call.kind == Kind::kOutputCommit && state_.commit_queued()) {
    if (commits_.EnsureRunning()) {
      turn.NotifyCommits();
    } else {
      state_.RejectCommit(call.now);
    }
  }
  return answer;
}

std::int64_t Hub::Poll(Owner owner, Token operation) {
  const Turn turn(*this);
  return state_.Poll(owner, operation);
}

std::int32_t Hub::Yield(Owner owner, Token token) {
  HubState::OperationPtr operation;
  {
    const MonotonicTime now = clock_.Now();
    Turn turn(*this);
    operation = state_.Suspend(owner, token, now);
    if (!operation) {
      return -1;
    }
    if (!operation->pending()) {
      return 1;
    }
    if (operation->armed_at) {
      if (!timers_.EnsureRunning()) {
        state_.Reject(*operation, now);
        return 1;
      }
      turn.NotifyTimers();
    }
    operation->parked = true;
  }
  std::unique_lock lock(mutex_);
  operation->changed.wait(lock, [&operation] { return !operation->pending(); });
  operation->parked = false;
  return 1;
}

std::int32_t Hub::Cancel(Owner owner, Token operation) {
  const MonotonicTime now = clock_.Now();
  const Turn turn(*this);
  return state_.Cancel(owner, operation, now) ? 1 : 0;
}

Answer<std::int32_t> Hub::StreamRead(Owner owner, Token blob, std::uint32_t address,
                                     std::int32_t bytes, const wasi::GuestMemory& memory) {
  const StreamCall call{owner, blob, address, bytes, memory, clock_.Now()};
  const Turn turn(*this);
  return state_.StreamRead(call);
}

Answer<std::int32_t> Hub::StreamWrite(Owner owner, Token blob, std::uint32_t address,
                                      std::int32_t bytes, const wasi::GuestMemory& memory) {
  const StreamCall call{owner, blob, address, bytes, memory, clock_.Now()};
  const Turn turn(*this);
  return state_.StreamWrite(call);
}

std::int32_t Hub::StreamClose(Owner owner, Token blob) {
  const MonotonicTime now = clock_.Now();
  const Turn turn(*this);
  return state_.CloseBlob(owner, blob, now) ? 0 : 1;
}

// Only the calling thread can use its hash; a revocation meanwhile ends the operation, not the
// call.
Answer<std::int64_t> Hub::UpdateHash(const Submission& call) {
  std::optional<HubState::HashUpdate> update;
  {
    const Turn turn(*this);
    update = state_.BeginHashUpdate(call);
  }
  if (!update) {
    return kRefused;
  }
  std::array<std::uint8_t, 4096> piece;  // hashed from here: guest memory may change meanwhile
  for (std::uint32_t done = 0; done < update->size;) {
    const auto bytes =
        static_cast<std::uint32_t>(std::min<std::size_t>(piece.size(), update->size - done));
    const std::span<std::uint8_t> copy = std::span(piece).first(bytes);
    CopyFromShared(copy, update->bytes + done);
    update->hash->Update(copy);
    done += bytes;
  }
  const Turn turn(*this);
  state_.Complete(*update->operation, 1);
  return static_cast<std::int64_t>(update->operation->token);
}

// ---- the run ----

void Hub::Revoke(OperationStatus status) {
  const MonotonicTime now = clock_.Now();
  const Turn turn(*this);
  state_.Revoke(status, now);
}

void Hub::OwnerExited(Owner owner) {
  const MonotonicTime now = clock_.Now();
  const Turn turn(*this);
  state_.ExitOwner(owner, now);
}

void Hub::Finish() {
  const MonotonicTime now = clock_.Now();
  {
    Turn turn(*this);
    state_.Revoke(OperationStatus::kClosed, now);
    finishing_ = true;
    turn.NotifyTimers();
    turn.NotifyCommits();
  }
  // Nothing starts them any more: everything is revoked.
  timers_.Join();
  commits_.Join();
  const Turn turn(*this);
  state_.Clear();
}

OutputFacts Hub::output_facts() const {
  const std::lock_guard lock(mutex_);
  return state_.output_facts();
}

HubSnapshot Hub::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return state_.Snapshot();
}

void Hub::ClockChanged() {
  Turn turn(*this);
  turn.NotifyTimers();
}

// ---- service threads ----

void Hub::RunTimers() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      const std::optional<MonotonicTime> end = state_.NextEnd();
      if (finishing_) {
        return;
      }
      // Spurious wake-ups are welcome: everything is looked at again.
      if (!end) {
        timers_changed_.wait(lock);
      } else if (const MonotonicTime now = clock_.Now(); now < *end) {
        timers_changed_.wait_for(lock, std::min(kWaitMax, Deadline::At(*end).Remaining(now)));
      }
    }
    const MonotonicTime now = clock_.Now();
    const Turn turn(*this);
    state_.Expire(now);
  }
}

void Hub::RunCommits() {
  while (true) {
    std::optional<HubState::Commit> commit;
    {
      std::unique_lock lock(mutex_);
      commit_queued_.wait(lock, [this] { return finishing_ || state_.commit_queued(); });
      commit = state_.StartCommit();
      if (!commit) {
        return;  // finishing, and the revocation took what was queued
      }
    }
    RunCommit(*std::move(commit));
  }
}

void Hub::RunCommit(HubState::Commit commit) {
  {
    // The content is no longer the blob's: other blobs may have room.
    const MonotonicTime now = clock_.Now();
    const Turn turn(*this);
    state_.Drive(now);
  }
  const CommitJob job{
      .grant = *output_,
      .hooks = hooks_,
      .authorised =
          [this, &commit] {
            const std::lock_guard lock(mutex_);
            return commit.operation->pending();
          },
      .release =
          [this](Buffer& piece) {
            const MonotonicTime now = clock_.Now();
            const Turn turn(*this);
            piece.Free();
            state_.Drive(now);
          },
  };
  const CommitResult result = WriteOutput(job, commit.pieces);
  if (result == CommitResult::kWritten) {
    const MonotonicTime now = clock_.Now();
    const Turn turn(*this);
    if (state_.CompleteCommit(commit, now)) {
      return;
    }
  }
  const bool cleaned = DiscardOutput(*output_);
  const MonotonicTime now = clock_.Now();
  const Turn turn(*this);
  state_.FailCommit(commit, result == CommitResult::kTooLarge, cleaned, now);
}

}  // namespace bulkhead::sketch
