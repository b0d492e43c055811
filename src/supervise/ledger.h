// The counters behind Snapshot. Thread-safe; each record touches its own field only.
#pragma once

#include <bulkhead/snapshot.h>

#include <atomic>
#include <memory>

namespace bulkhead::supervise {

class Ledger {
 public:
  using Field = std::uint64_t WorkerLedger::*;

  void Add(Field field) { cell(field).fetch_add(1, std::memory_order_relaxed); }

  void Sub(Field field) { cell(field).fetch_sub(1, std::memory_order_relaxed); }

  WorkerLedger Read() const;

 private:
  std::atomic<std::uint64_t>& cell(Field field);

  std::atomic<std::uint64_t> spawned_{0};
  std::atomic<std::uint64_t> cancel_sent_{0};
  std::atomic<std::uint64_t> grace_expired_{0};
  std::atomic<std::uint64_t> forced_{0};
  std::atomic<std::uint64_t> reaped_{0};
  std::atomic<std::uint64_t> protocol_failures_{0};
  std::atomic<std::uint64_t> live_workers_{0};
  std::atomic<std::uint64_t> live_protocol_tasks_{0};
  std::atomic<std::uint64_t> pending_root_leases_{0};
};

// The same for CodeCounts.
class CodeLedger {
 public:
  using Field = std::uint64_t CodeCounts::*;

  void Add(Field field) { cell(field).fetch_add(1, std::memory_order_relaxed); }

  CodeCounts Read() const;

 private:
  std::atomic<std::uint64_t>& cell(Field field);

  std::atomic<std::uint64_t> hits_{0};
  std::atomic<std::uint64_t> misses_{0};
  std::atomic<std::uint64_t> corrupt_{0};
  std::atomic<std::uint64_t> stale_{0};
  std::atomic<std::uint64_t> stored_{0};
};

// One run's view: counts into the shared ledger and remembers its own share for the report.
class RunLedger {
 public:
  explicit RunLedger(Ledger& shared) : shared_(shared) {}

  void Add(Ledger::Field field) {
    shared_.Add(field);
    ++(own_.*field);
  }

  void Sub(Ledger::Field field) {
    shared_.Sub(field);
    --(own_.*field);
  }

  const WorkerLedger& own() const { return own_; }

  Ledger& shared() const { return shared_; }

 private:
  Ledger& shared_;
  WorkerLedger own_;
};

// A gauge that is up while this object lives; movable into a cleanup bundle. Counts in the shared
// ledger only.
class GaugeHold {
 public:
  GaugeHold(Ledger& ledger, Ledger::Field field) : ledger_(ledger), field_(field) {
    ledger_.Add(field_);
  }

  GaugeHold(const GaugeHold&) = delete;
  GaugeHold& operator=(const GaugeHold&) = delete;

  ~GaugeHold() { ledger_.Sub(field_); }

 private:
  Ledger& ledger_;
  Ledger::Field field_;
};

}  // namespace bulkhead::supervise
