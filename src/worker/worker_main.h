// The life of a worker program, from exec to exit:
//
//   Hello -> lock down -> HelloAck -> Execute -> verify the module -> Ready -> [handler: Started]
//   -> Terminal -> exit 0
//
// Exit status 1, with a sentence on stderr and nothing more sent, if the parent does not speak the
// protocol; a parent that closes the channel between messages gets exit status 0.
#pragma once

#include "worker/run_handler.h"

namespace bulkhead::worker {

// The socket to the parent, as every worker inherits it.
inline constexpr int kChannelDescriptor = 3;

// Serves one run on kChannelDescriptor and exits without unwinding: nothing an engine would tidy up
// outlives the process.
[[noreturn]] void WorkerMain(RunHandler& handler);

}  // namespace bulkhead::worker
