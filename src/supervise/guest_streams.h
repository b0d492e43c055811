// The guest's standard streams on their way through the parent. Driven by the exchange's loop;
// nothing here blocks. One thread. SIGPIPE must be blocked on it (ScopedSigpipeBlock).
#pragma once

#include <bulkhead/result.h>
#include <bulkhead/run.h>

#include <csignal>
#include <string>

#include "base/unique_fd.h"
#include "base/wait_set.h"

namespace bulkhead::supervise {

// Keeps a reader that left from killing the host: writes report EPIPE, and a SIGPIPE of ours does
// not stay pending.
class ScopedSigpipeBlock {
 public:
  ScopedSigpipeBlock();
  ScopedSigpipeBlock(const ScopedSigpipeBlock&) = delete;
  ScopedSigpipeBlock& operator=(const ScopedSigpipeBlock&) = delete;
  ~ScopedSigpipeBlock();

 private:
  sigset_t old_mask_;
  bool was_pending_;
};

// stdout or stderr: a pipe from the worker to where the caller wants it. Pipe to pipe moves pages
// without copying. Back-pressure is the pipe itself: while the destination is full nothing is read.
class GuestOutput {
 public:
  struct Options {
    GuestStream stream;
    bool neutralise_terminal = true;
    std::uint64_t bytes_max = 0;  // 0: unlimited
  };

  // Pipe size asked for; less is fine (an unprivileged user's pages are limited).
  static constexpr int kPipeBytes = 1 << 20;

  // The worker's end comes back through `worker_end`; invalid when the stream is kNone.
  static Result<GuestOutput> Create(Options options, UniqueFd* worker_end);

  // Adds what to wait for now under `key` (source) and `key + 1` (destination).
  void AddTo(WaitSet& waits, int key) const;
  // Moves what can be moved without waiting.
  void Pump(const WaitSet& waits, int key);

  // Moves what is left after the worker's end; true when there is nothing more to move.
  bool drained() const { return ended_ && pending_.empty(); }

  // The worker is gone: once the pipe is empty nothing more comes, whoever still holds its other
  // end.
  void EndIfEmpty();
  // No more source: counts what is left in the pipe as undelivered.
  void Abandon();

  std::uint64_t bytes() const { return bytes_; }

  std::uint64_t undelivered_bytes() const { return undelivered_; }

  bool limit_reached() const { return limit_reached_; }

  bool destination_closed() const { return closed_; }

  int destination_errno() const { return destination_errno_; }

  std::string TakeCapture() { return std::move(capture_); }

 private:
  enum class Sink : std::uint8_t { kNone, kPipe, kSocket, kFile, kTerminal, kCapture };

  GuestOutput(Options options, Sink sink, UniqueFd source)
      : options_(options), sink_(sink), source_(std::move(source)) {}

  BorrowedFd destination() const { return BorrowedFd(options_.stream.descriptor); }

  bool open() const { return source_.valid() && !ended_; }

  void MoveSome();
  // true: some bytes moved, there may be more.
  bool Splice();
  void FillPending();
  // false: the destination is full for now.
  bool FlushPending();
  ssize_t WriteOut(std::string_view text);
  // Bytes that lie in the pipe.
  std::uint64_t Waiting() const;
  // Bytes that may still be taken from the source, at most `want`.
  std::size_t Allowed(std::size_t want) const;
  void CloseDestination(int sys_errno);

  Options options_;
  Sink sink_ = Sink::kNone;
  UniqueFd source_;
  std::string pending_;  // taken from the pipe, not yet accepted by the destination
  std::string capture_;
  bool wait_for_destination_ = false;
  bool ended_ = false;
  bool closed_ = false;
  bool limit_reached_ = false;
  int destination_errno_ = 0;
  std::uint64_t bytes_ = 0;  // delivered
  std::uint64_t taken_ = 0;
  std::uint64_t undelivered_ = 0;
};

// stdin: most descriptors go to the worker as they are; a terminal is relayed, so that hostile code
// never holds it.
class GuestInput {
 public:
  static Result<GuestInput> Create(const GuestStream& stream, UniqueFd* worker_end);

  void AddTo(WaitSet& waits, int key) const;
  void Pump(const WaitSet& waits, int key);

 private:
  UniqueFd sink_;  // our end of the relay; invalid when there is none (any more)
  int source_ = -1;
  std::string pending_;
};

}  // namespace bulkhead::supervise
