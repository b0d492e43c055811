// The control thread of one run: starts the guest thread, relays its progress, turns whatever
// arrives on the channel and the deadline into a stop, and sends exactly one Terminal.
#pragma once

#include <bulkhead/result.h>

#include "wire/channel.h"
#include "worker/run_handler.h"

namespace bulkhead::worker {

// Sends one message and waits until the socket took it. kIo when the parent is gone.
Status SendFully(wire::Channel& channel, wire::MessageId id, const wire::FromWorker& message);

// From after Ready to after Terminal. When it returns the process has to exit: a guest thread that
// was stopped while it compiled is still at it. Errors: the parent is gone or the machine gave no
// thread; there is nobody or no way to report to.
Status ServeRun(wire::Channel& channel, wire::MessageId id, RunHandler& handler,
                RunRequest request);

}  // namespace bulkhead::worker
