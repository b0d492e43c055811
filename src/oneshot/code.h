// Compiled code on its way from a worker that compiles to one that runs: its key, the work that
// makes it, the check of what was made.
#pragma once

#include "codecache/store.h"
#include "oneshot/run.h"

namespace bulkhead::oneshot {

// The cache a run uses; nullptr if it compiles for itself: there is none, or the worker is a
// program that is not part of this build and need not know of code.
const codecache::Store* StoreFor(const Runtime::Impl& runtime, const RunRequest& request,
                                 const Work& work);

// Of the code that exactly the worker of this preparation would compile.
codecache::Key CodeKey(const Preparation& run, const AdmittedModule& module);

// The work of a worker that compiles what `run` would run, and does nothing else.
Result<Work> CompileWork(const Work& run);

// `request` without anything that gives authority: what bounds and stops a worker is left.
RunRequest WithoutAuthority(const RunRequest& request);

// What a finished compile worker left in its memory file, sealed from here on. kProtocol if that is
// nothing, or more than was allowed.
Result<codecache::Code> TakeCode(Work compiled, std::uint64_t bytes_max);

// The worker of this preparation gets the code and does not compile.
Status GiveCode(const codecache::Code& code, Preparation& run);

}  // namespace bulkhead::oneshot
