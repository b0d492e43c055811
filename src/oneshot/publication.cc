#include "oneshot/publication.h"

namespace bulkhead::oneshot {
namespace {

Publication Replace(const Outcome& masked, OutcomeCode code) {
  Outcome outcome;
  outcome.code = code;
  return {std::move(outcome), masked.CodeText()};
}

OutcomeCode CommitFailure(staging::CommitStep failed_at) {
  return failed_at == staging::CommitStep::kCheckSize ? OutcomeCode::kOutputLimit
                                                      : OutcomeCode::kWorkerOutputCommit;
}

}  // namespace

Publication AfterCommit(Outcome completed, const staging::CommitResult& commit, StopCause stop) {
  if (commit.published) {
    return commit.removal_failed ? Replace(completed, OutcomeCode::kWorkerOutputCommittedCleanup)
                                 : Publication{std::move(completed), {}};
  }
  if (commit.stopped) {
    if (commit.removal_failed) {
      return Replace(completed, OutcomeCode::kWorkerOutputCleanup);
    }
    return Replace(completed, stop == StopCause::kCancelled ? OutcomeCode::kCancelled
                                                            : OutcomeCode::kDeadlineExceeded);
  }
  return Replace(completed, CommitFailure(commit.failed_at));
}

Publication AfterDiscard(Outcome outcome, bool removed) {
  return removed ? Publication{std::move(outcome), {}}
                 : Replace(outcome, OutcomeCode::kWorkerOutputCleanup);
}

}  // namespace bulkhead::oneshot
