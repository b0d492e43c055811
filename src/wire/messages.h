// Everything the two sides of a worker's socket can say. docs/protocol.md shows the same as tables.
//
// A run, in order:  parent: Hello ............ Execute ........................ [Cancel]
//                   worker:        HelloAck ......... Ready, Started, [Trace], Terminal, exit 0
// The parent reads at most kWorkerMessagesMax messages; closing the socket means Cancel.
#pragma once

#include <variant>

#include "wire/messages_from_worker.h"
#include "wire/messages_to_worker.h"

namespace bulkhead::wire {

// Direction is a type: a message that travels the wrong way cannot even be decoded.
using ToWorker = std::variant<Hello, Execute, Cancel>;
using FromWorker = std::variant<HelloAck, Ready, Started, Trace, Terminal>;

}  // namespace bulkhead::wire
