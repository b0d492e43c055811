// The end of an exchange: what the guest wrote reaches its destination, or is known not to.
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "supervise/exchange.h"

namespace bulkhead::supervise {

// What the guest wrote before its end is delivered as long as the destination takes it: until the
// deadline, or for kDeliverMax once a stop was latched or the deadline has passed.
void Exchange::DeliverRest() {
  if (input_.worker.worker_stderr.valid()) {
    DrainWorkerStderr();
  }
  if (!result_.facts.contained) {
    return;  // its streams may stay open for ever
  }
  const bool stopped = machine_.stop() != StopCause::kNone;
  const Deadline soon = Deadline::After(context_.clock.Now(), kDeliverMax);
  const Deadline until = stopped ? soon : std::max(input_.deadline, soon);
  while (DeliverSome(until, stopped)) {
  }
  const GuestOutput* out = guest_stdout();
  if (out != nullptr && out->limit_reached() && machine_.LatchStop(true, false)) {
    // Written in time, but more than may be: the guest was just quicker than the loop.
    result_.facts.stdout_limit_reached = true;
  }
  if (out != nullptr && out->destination_closed() && out->undelivered_bytes() > 0 &&
      machine_.LatchStop(true, false)) {
    result_.facts.stdout_closed = true;  // likewise: it refused what was on its way
  }
  for (GuestOutput* stream : {guest_stdout(), guest_stderr()}) {
    if (stream != nullptr && !stream->drained()) {
      // Cut short: a run whose output could not be delivered in time has not completed in time.
      machine_.LatchStop(CancelRequested() || input_.force.cancelled(),
                         !stream->destination_closed());
      stream->Abandon();
    }
  }
}

bool Exchange::DeliverSome(Deadline until, bool stopped) {
  const std::array<std::pair<GuestOutput*, int>, 2> streams{
      {{guest_stdout(), kStdout}, {guest_stderr(), kStderr}}};
  bool busy = false;
  waits_.Clear();
  for (const auto& [stream, key] : streams) {
    if (stream != nullptr) {
      stream->EndIfEmpty();
    }
    if (stream != nullptr && !stream->drained()) {
      stream->AddTo(waits_, key);
      busy = true;
    }
  }
  if (!stopped) {
    waits_.Add(BorrowedFd(input_.cancel.poll_fd()), POLLIN, kCancel);
    waits_.Add(BorrowedFd(input_.abandoned.poll_fd()), POLLIN, kAbandoned);
    waits_.Add(BorrowedFd(input_.force.poll_fd()), POLLIN, kForce);
  }
  const auto ready = busy ? waits_.Wait(context_.clock, until) : Result<bool>(false);
  if (!ready || !*ready || (!stopped && (CancelRequested() || input_.force.cancelled()))) {
    return false;
  }
  for (const auto& [stream, key] : streams) {
    if (stream != nullptr && !stream->drained()) {
      stream->Pump(waits_, key);
    }
  }
  return true;
}

}  // namespace bulkhead::supervise
