// One run's state on its way through RunModule (run_module.cc tells the story; prepare.cc fills
// what the worker is told).
#pragma once

#include <bulkhead/run.h>

#include <memory>
#include <optional>
#include <vector>

#include "process/launcher.h"
#include "staging/staging_area.h"
#include "supervise/exchange.h"
#include "supervise/runtime_impl.h"
#include "wire/messages.h"

namespace bulkhead::oneshot {

// What is done: an admitted module run, or compiled for a run, or text converted.
struct Work {
  wire::Mode mode = wire::Mode::kRun;
  BorrowedFd module;
  std::uint64_t module_bytes = 0;
  Profile profile = Profile::kWasi;
  UniqueFd product;  // kConvertText, kCompile: the memory file the result goes to
  const AdmittedModule* admitted = nullptr;  // kRun: what the module was admitted as
};

// A run of what was admitted; `module` has to outlive it.
Work WorkOf(const AdmittedModule& module);

// The limits of a sketch; kInvalidArgument otherwise.
Status ValidateSketch(const RunRequest& request);
// Profile, fuel, threads and blobs; adds to the memory overhead what these need.
void FillGuestLimits(const RunRequest& request, Profile profile, wire::Execute& execute);

// The argument and environment lists, and the directory grants, within the wire's bounds;
// kInvalidArgument otherwise.
// Also what the profile has against the limits.
Status ValidateRequest(const RunRequest& request, Profile profile);

// Of the level and of the request.
std::vector<std::string> RequiredMechanisms(const WorkerConfig& config);

// Everything a worker needs, made before it exists.
struct Preparation {
  supervise::WorkerStart start;
  supervise::ExchangeInput exchange;
};

// How a worker for this request is started, but for the processor time (LimitCpu). A run with
// directories or scratch space starts its own.
supervise::WorkerStart StartFor(const RunRequest& request, wire::Mode mode);
bool MayBeWarm(const RunRequest& request);

// The largest code a worker may make under these limits: it has it in its memory as well.
std::uint64_t CodeBytesMax(const RunRequest& request);

// The worker gets what is left of the processor time after other workers of the run `used` some;
// rounded up to seconds, at least one. Nothing if there is no such limit.
void LimitCpu(const RunRequest& request, std::chrono::microseconds used,
              supervise::WorkerStart& start);

// kInvalidArgument when a grant or stream cannot be used, else kIo/kResourceExhausted.
Result<Preparation> Prepare(const RunRequest& request, Work& work,
                            const staging::StagingArea* staging);

// The whole story: everything between a request and its report.
// `abandoned` cancels like the request's token.
RunReport Execute(Runtime::Impl& runtime, Work work, const RunRequest& request,
                  const CancelToken& abandoned = {});

}  // namespace bulkhead::oneshot
