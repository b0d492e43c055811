// Decision table C: how publishing (or discarding) the output changes the outcome. Pure.
#pragma once

#include <bulkhead/outcome.h>

#include <string>

#include "staging/staging_area.h"

namespace bulkhead::oneshot {

struct Publication {
  Outcome outcome;
  std::string masked_code;  // the outcome that was outranked, empty if none
};

// After StagingArea::Commit of a completed run. `stop`: why the probe said stop.
Publication AfterCommit(Outcome completed, const staging::CommitResult& commit, StopCause stop);

// After StagingArea::Discard of any other run.
Publication AfterDiscard(Outcome outcome, bool removed);

}  // namespace bulkhead::oneshot
