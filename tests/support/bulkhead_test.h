// Base of every test that runs workers: a fresh Runtime, a LeakGuard around it, and short ways to
// pose a run and to say what must have come of it.
#pragma once

#include <bulkhead/run.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "support/leak_guard.h"
#include "support/stage_log.h"
#include "support/temp_dir.h"

namespace bulkhead::test {

// spawned, cancel_sent, grace_expired, forced, reaped, protocol_failures: the specification's
// ledger column.
using LedgerColumn = std::array<std::uint64_t, 6>;

// The columns that occur again and again.
inline constexpr LedgerColumn kNothing = {0, 0, 0, 0, 0, 0};
inline constexpr LedgerColumn kClean = {1, 0, 0, 0, 1, 0};
inline constexpr LedgerColumn kPoliteStop = {1, 1, 0, 0, 1, 0};
inline constexpr LedgerColumn kForcedAtOnce = {1, 0, 0, 1, 1, 0};
inline constexpr LedgerColumn kForcedAfterGrace = {1, 1, 1, 1, 1, 0};
inline constexpr LedgerColumn kProtocolForced = {1, 0, 0, 1, 1, 1};

LedgerColumn ColumnOf(const WorkerLedger& ledger);

// A module that must be admitted, resp. translate first.
AdmittedModule Admit(std::span<const std::uint8_t> bytes);
AdmittedModule Admit(std::string_view text);

// An admitted module with an empty _start, for workers that never look at it.
AdmittedModule EmptyModule();

// Descendants that stay in the worker's group die with it everywhere; those that left it only where
// the machine has a pid namespace or a cgroup to hold them: what this run had.
bool CatchesEscapes(const RunReport& report);

class BulkheadTest : public testing::Test {
 protected:
  // Long enough that only the intended trigger fires, also on a busy machine under sanitizers.
  static constexpr std::chrono::seconds kLongDeadline{60};
  static constexpr std::chrono::milliseconds kShortDeadline{300};
  static constexpr std::chrono::milliseconds kShortGrace{200};

  BulkheadTest();
  void TearDown() override;

  Runtime& runtime() { return *runtime_; }

  StageLog& stages() { return *stages_; }

  const TempDir& dir() const { return dir_; }

  // Ends the Runtime and starts another one.
  void RestartRuntime(RuntimeOptions options);

  // Path of a program of tests/workers.
  static std::string WorkerPath(std::string_view name);
  // Long deadline, one second of grace, no streams.
  static RunRequest RequestFor(std::string_view worker);
  // The same for the real worker; with all that in_strict.py asks for if that runs the program.
  static RunRequest GuestRequest();
  // RequestFor with a destination in dir(), which holds "original".
  RunRequest RequestWithOutput(std::string_view worker) const;

  std::string Destination() const { return dir_.Path("destination"); }

  // By this machine; asks a run.
  bool EscapesAreCaught();

  // dir() as a writable grant: the worker and its descendants hold the lock "alive" in it.
  void GrantAliveLock(RunRequest& request) const;

  // RunModule of the empty module, checked against 4.7 the moment it returns.
  RunReport Run(const RunRequest& request);
  RunReport Run(const AdmittedModule& module, const RunRequest& request);
  // The same, cancelled as soon as the guest executes.
  RunReport RunCancelledInExecute(const RunRequest& request);
  RunReport RunCancelledInExecute(const AdmittedModule& module, RunRequest request);
  // For reports that came another way.
  void CheckAfterRun(const RunReport& report);

  // The destination is as before, and nothing else is there.
  void ExpectDestinationUntouched() const;
  void ExpectPublished(std::string_view content) const;

  LeakGuard& guard() { return guard_; }

 private:
  TempDir dir_;
  LeakGuard guard_;
  std::unique_ptr<StageLog> stages_;
  std::unique_ptr<Runtime> runtime_;
};

// Outcome by its stable text.
void ExpectOutcome(const RunReport& report, std::string_view code_text);
void ExpectOutcome(const RunReport& report, std::string_view code_text, const LedgerColumn& column);

}  // namespace bulkhead::test
