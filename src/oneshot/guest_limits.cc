// What the guest's threads and blobs may use, as the worker is told.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "contract/guest_abi.h"
#include "oneshot/run.h"

namespace bulkhead {
namespace {

Status Require(bool legal, std::string_view rule) {
  if (!legal) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("profile sketch: {}", rule));
  }
  return {};
}

// What can be counted and addressed by a 32-bit guest.
constexpr std::uint64_t kChunkBytesMax = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Status SketchLimits::Validate() const {
  BH_TRY(Require(fuel_root_slice > 0 && fuel_child_slice > 0, "no slice of fuel is 0"));
  BH_TRY(Require(fuel_total >= fuel_root_slice && fuel_total - fuel_root_slice >= fuel_child_slice,
                 "all fuel is at least that of the first thread and of one more"));
  BH_TRY(Require(blob_chunk_bytes > 0 && blob_chunk_bytes <= kChunkBytesMax,
                 "a chunk has 1 byte to 4 GiB"));
  BH_TRY(Require(blob_chunk_bytes <= blob_bytes && blob_bytes <= sketch_bytes,
                 "chunk, blob and sketch bytes do not decrease in this order"));
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - 2 * blob_chunk_bytes;
  BH_TRY(Require(sketch_bytes <= room && transfer_bytes >= sketch_bytes + 2 * blob_chunk_bytes,
                 "transfer bytes are at least those of the sketch and of two chunks"));
  return Require(progress_timeout > std::chrono::microseconds::zero(),
                 "the progress timeout is more than 0");
}

}  // namespace bulkhead

namespace bulkhead::oneshot {
namespace {

wire::GuestProfile WireProfile(Profile profile) {
  switch (profile) {
    case Profile::kWasiThreads:
      return wire::GuestProfile::kWasiThreads;
    case Profile::kSketch:
      return wire::GuestProfile::kSketch;
    case Profile::kAuto:
    case Profile::kWasi:
      return wire::GuestProfile::kWasi;
  }
  return wire::GuestProfile::kWasi;
}

// The same for every thread that may live at once, the first included; whoever ends gives the rest
// back.
void ShareOut(std::uint64_t fuel, wire::Execute& execute) {
  const std::uint64_t share = std::max<std::uint64_t>(1, fuel / (execute.threads.live_max + 1));
  execute.fuel = fuel;
  execute.threads.root_fuel = share;
  execute.threads.child_fuel = share;
}

void FillSketch(const RunRequest& request, wire::Execute& execute) {
  const SketchLimits& limits = request.sketch;
  execute.threads.total_max = execute.threads.live_max;
  if (!request.limits.fuel) {
    execute.fuel = limits.fuel_total;
    execute.threads.root_fuel = limits.fuel_root_slice;
    execute.threads.child_fuel = limits.fuel_child_slice;
  }
  execute.blobs = {.chunk_bytes = limits.blob_chunk_bytes,
                   .blob_bytes = limits.blob_bytes,
                   .sketch_bytes = limits.sketch_bytes,
                   .transfer_bytes = limits.transfer_bytes,
                   .live_max = limits.blobs_max,
                   .pending_reads_max = limits.pending_reads_max,
                   .pending_writes_max = limits.pending_writes_max,
                   .idle_timeout_us = static_cast<std::uint64_t>(limits.progress_timeout.count())};
}

}  // namespace

Status ValidateSketch(const RunRequest& request) {
  BH_TRY(request.sketch.Validate());
  // Refused rather than ignored: somebody counts on them.
  BH_TRY(Require(request.directories.empty() && request.limits.scratch_bytes == 0,
                 "the guest sees no directories and no scratch space"));
  BH_TRY(Require(request.environment.empty() && request.arguments.size() <= 1,
                 "the guest sees no arguments and no environment"));
  BH_TRY(Require(request.stdin_from.kind == GuestStream::Kind::kNone,
                 "the guest sees no standard input"));
  return Require(request.limits.threads_max <= contract::kThreadsMax,
                 fmt::format("{} threads: 1 to {} are accepted", request.limits.threads_max,
                             contract::kThreadsMax));
}

void FillGuestLimits(const RunRequest& request, Profile profile, wire::Execute& execute) {
  execute.profile = WireProfile(profile);
  execute.fuel = request.limits.fuel.value_or(0);
  if (execute.profile == wire::GuestProfile::kWasi) {
    return;
  }
  execute.threads.live_max = request.limits.threads_max;
  execute.threads.child_fuel_returns = execute.profile == wire::GuestProfile::kWasiThreads;
  // Each thread's stack and instance, and what the C library keeps for it.
  constexpr std::uint64_t kThreadOverheadBytes = 2ULL << 20;
  execute.memory_overhead_bytes +=
      execute.threads.live_max * (request.limits.stack_bytes + kThreadOverheadBytes);
  if (request.limits.fuel) {
    ShareOut(*request.limits.fuel, execute);
  }
  if (execute.profile == wire::GuestProfile::kSketch) {
    FillSketch(request, execute);
    execute.memory_overhead_bytes += execute.blobs.transfer_bytes;
  }
}

}  // namespace bulkhead::oneshot
