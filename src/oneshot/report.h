// Fills the parts of a RunReport from what the steps of a run found.
#pragma once

#include <bulkhead/run.h>

#include <array>

#include "staging/staging_area.h"
#include "supervise/exchange.h"

namespace bulkhead::oneshot {

// When each stage was entered; the time in a stage lasts until the next one that was entered.
class StageClock {
 public:
  void Enter(Stage stage, MonotonicTime now) { entered_[static_cast<std::size_t>(stage)] = now; }

  void Adopt(const std::array<MonotonicTime, kStageCount>& entered);
  void Close(MonotonicTime end,
             std::array<std::chrono::microseconds, kStageCount>& durations) const;

 private:
  std::array<MonotonicTime, kStageCount> entered_{};
};

void FillFromExchange(supervise::ExchangeResult& result, supervise::Exchange& exchange,
                      RunReport& report);
void FillFromCommit(const staging::CommitResult& commit, RunReport& report);
void FillLimits(const RunRequest& request, RunReport& report);

// "exit 0", "signal 9 (Killed)".
std::string DescribeExit(const process::ExitStatus& exit);

}  // namespace bulkhead::oneshot
