// Spare workers for runs to come.
#include <bulkhead/run.h>

#include "oneshot/run.h"

namespace bulkhead {

Status KeepWarm(Runtime& runtime, const RunRequest& like, std::uint32_t count) {
  BH_TRY(oneshot::ValidateRequest(like, Profile::kWasi));
  if (!oneshot::MayBeWarm(like)) {
    return Fail(ErrorCode::kInvalidArgument,
                "spare workers: a request without directories and scratch space is accepted");
  }
  supervise::WorkerStart start = oneshot::StartFor(like, wire::Mode::kRun);
  oneshot::LimitCpu(like, std::chrono::microseconds(0), start);
  return runtime.impl().warm->Keep(std::move(start), count);
}

}  // namespace bulkhead
