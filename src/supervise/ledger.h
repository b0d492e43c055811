// The counters behind Snapshot. Thread-safe; each record touches its own field only.
#pragma once

#include <bulkhead/snapshot.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace bulkhead::supervise {

template <class Counts>
class Counters {
 public:
  using Field = std::uint64_t Counts::*;

  void Add(Field field) {
    const std::lock_guard lock(mutex_);
    ++(counts_.*field);
  }

  void Sub(Field field) {
    const std::lock_guard lock(mutex_);
    --(counts_.*field);
  }

  // All of one moment.
  Counts Read() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  Counts counts_;
};

using Ledger = Counters<WorkerLedger>;
using CodeLedger = Counters<CodeCounts>;

// What held the worker that ended last.
class ContainmentRecord {
 public:
  void Note(const std::vector<std::string>& mechanisms) {
    const std::lock_guard lock(mutex_);
    mechanisms_ = mechanisms;
  }

  std::vector<std::string> Read() const {
    const std::lock_guard lock(mutex_);
    return mechanisms_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> mechanisms_;
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
