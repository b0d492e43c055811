// What a kind of worker adds to the common serve loop: how to do one run. And what connects the two
// threads of a run: the control thread (the program's first; talks to the parent) and the guest
// thread (executes the handler).
#pragma once

#include <bulkhead/result.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/event_fd.h"
#include "base/unique_fd.h"
#include "wire/messages.h"
#include "worker/lockdown.h"

namespace bulkhead::worker {

enum class StopCause : std::uint8_t { kCancelled, kDeadlineExceeded };

// How a run ended.
struct RunEnd {
  wire::Terminal terminal;
  std::string trace;          // for tests: goes out before the terminal unless empty
  bool threads_left = false;  // the handler still runs: the process has to end without it
};

// Decides once whether a run is stopped, whether that came before the guest began, and how the run
// ended. Any thread.
class RunControl {
 public:
  static Result<std::unique_ptr<RunControl>> Create();

  // ---- guest threads ----
  // The guest is compiled and would run now. false: a stop came first and nothing of the guest may
  // run.
  [[nodiscard]] bool Begin(std::chrono::microseconds compile_time);
  std::optional<StopCause> stop() const;
  // The run is over, whatever the handler and other guest threads still do. The first end counts.
  void EndNow(wire::Terminal terminal);

  // What the run did, for tests: before its end.
  void SetTrace(std::string text);

  // Readable once a stop is decided; for host calls that wait.
  BorrowedFd stop_event() const { return stop_event_.fd(); }

  // ---- serve loop and the handler's thread ----
  // The first cause counts; returns whether this call decided.
  bool Stop(StopCause cause);
  std::optional<std::chrono::microseconds> began() const;
  // The handler has returned. No effect after EndNow.
  void Finish(wire::Terminal terminal);
  std::optional<RunEnd> TakeEnd();

  // Readable when the run began or ended.
  const EventFd& progress() const { return progress_; }

 private:
  RunControl(EventFd stop_event, EventFd progress)
      : stop_event_(std::move(stop_event)), progress_(std::move(progress)) {}

  void End(RunEnd end);

  EventFd stop_event_;
  EventFd progress_;
  mutable std::mutex mutex_;  // guards everything below
  std::optional<StopCause> stop_;
  std::optional<std::chrono::microseconds> began_;
  bool ended_ = false;
  std::string trace_;
  std::optional<RunEnd> end_;
};

// One run's input. `module` and `code` stay mapped until the process ends.
struct RunRequest {
  explicit RunRequest(GuestPhase phase) : guest_phase(std::move(phase)) {}

  wire::Execute execute;
  std::span<const std::uint8_t> module;
  std::span<const std::uint8_t> code;  // of this module; empty: there is none
  UniqueFd stdin_fd;                   // each invalid unless Execute announces it
  UniqueFd stdout_fd;
  UniqueFd stderr_fd;
  UniqueFd output;
  std::vector<DirectoryGrant> directories;
  GuestPhase guest_phase;
};

// Serves one run and is never destroyed: the process ends with it.
class RunHandler {
 public:
  RunHandler() = default;
  RunHandler(const RunHandler&) = delete;
  RunHandler& operator=(const RunHandler&) = delete;
  virtual ~RunHandler() = default;

  // Control thread, first: the stack the guest thread needs, or why these settings cannot be
  // obeyed.
  virtual Result<std::size_t> GuestThreadStackBytes(const wire::Execute& execute) = 0;
  // Guest thread: the whole run. Calls Begin before anything of the guest's runs; does not throw
  // but std::bad_alloc.
  virtual wire::Terminal Run(RunRequest request, RunControl& control) = 0;
  // Control thread, at most once, while Run is between Begin and its end: a stop was decided, the
  // stop event is set.
  virtual void Interrupt(StopCause cause) noexcept = 0;
};

// A terminal without details; the text is made fit for the wire.
wire::Terminal MakeTerminal(wire::Terminal::Kind kind, std::string_view diagnostic = {});
// One line of valid UTF-8 without control characters in at most `bytes_max` bytes.
std::string WireText(std::string_view text, std::size_t bytes_max = wire::kDiagnosticBytesMax);

}  // namespace bulkhead::worker
