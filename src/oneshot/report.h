// Fills the parts of a RunReport from what the steps of a run found.
#pragma once

#include <bulkhead/run.h>

#include <array>
#include <vector>

#include "staging/staging_area.h"
#include "supervise/exchange.h"

namespace bulkhead::oneshot {

// When each stage was entered, some of them more than once; the time in a stage lasts until the
// next one is entered.
class StageClock {
 public:
  void Enter(Stage stage, MonotonicTime now) { marks_.push_back({now, stage}); }

  // Of one exchange: the epoch for stages that it did not enter.
  void Adopt(const std::array<MonotonicTime, kStageCount>& entered);
  void Close(MonotonicTime end, std::array<std::chrono::microseconds, kStageCount>& durations);

 private:
  struct Mark {
    MonotonicTime when;
    Stage stage;
  };

  std::vector<Mark> marks_;
};

// Replaces what an earlier worker of the run left in the report, but adds to its processor time.
void FillFromExchange(supervise::ExchangeResult& result, supervise::Exchange& exchange,
                      RunReport& report);
void FillFromCommit(const staging::CommitResult& commit, RunReport& report);
// `compile_time_reached`: the code of the outcome does not say which of two limits it was.
void FillLimits(const RunRequest& request, bool compile_time_reached, RunReport& report);

// "exit 0", "signal 9 (Killed)".
std::string DescribeExit(const process::ExitStatus& exit);

}  // namespace bulkhead::oneshot
