#include "supervise/ledger.h"

namespace bulkhead::supervise {

std::atomic<std::uint64_t>& Ledger::cell(Field field) {
  if (field == &WorkerLedger::spawned) {
    return spawned_;
  }
  if (field == &WorkerLedger::cancel_sent) {
    return cancel_sent_;
  }
  if (field == &WorkerLedger::grace_expired) {
    return grace_expired_;
  }
  if (field == &WorkerLedger::forced) {
    return forced_;
  }
  if (field == &WorkerLedger::reaped) {
    return reaped_;
  }
  if (field == &WorkerLedger::protocol_failures) {
    return protocol_failures_;
  }
  if (field == &WorkerLedger::live_workers) {
    return live_workers_;
  }
  return field == &WorkerLedger::live_protocol_tasks ? live_protocol_tasks_ : pending_root_leases_;
}

WorkerLedger Ledger::Read() const {
  return {.spawned = spawned_.load(),
          .cancel_sent = cancel_sent_.load(),
          .grace_expired = grace_expired_.load(),
          .forced = forced_.load(),
          .reaped = reaped_.load(),
          .protocol_failures = protocol_failures_.load(),
          .live_workers = live_workers_.load(),
          .live_protocol_tasks = live_protocol_tasks_.load(),
          .pending_root_leases = pending_root_leases_.load()};
}

std::atomic<std::uint64_t>& CodeLedger::cell(Field field) {
  if (field == &CodeCounts::hits) {
    return hits_;
  }
  if (field == &CodeCounts::misses) {
    return misses_;
  }
  if (field == &CodeCounts::corrupt) {
    return corrupt_;
  }
  return field == &CodeCounts::stale ? stale_ : stored_;
}

CodeCounts CodeLedger::Read() const {
  return {.hits = hits_.load(),
          .misses = misses_.load(),
          .corrupt = corrupt_.load(),
          .stale = stale_.load(),
          .stored = stored_.load()};
}

}  // namespace bulkhead::supervise
