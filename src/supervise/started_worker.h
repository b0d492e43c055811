// A worker process and the lines to it, before it knows its work.
#pragma once

#include <bulkhead/result.h>

#include <memory>
#include <optional>
#include <string>

#include "process/launcher.h"
#include "supervise/handshake.h"
#include "supervise/keeper.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace bulkhead::supervise {

// How a worker is started. Without directory grants equal starts make interchangeable workers.
struct WorkerStart {
  process::SpawnSpec spec;  // its descriptors are filled by StartWorker
  wire::Hello hello;        // nonce and namespaces are filled by StartWorker
  AckExpectations expected;

  // Equal for equal starts.
  std::string Key() const;
};

struct StartedWorker {
  std::unique_ptr<process::WorkerProcess> process;
  process::OuterWalls walls;  // what was put around it from outside
  UniqueFd socket;
  UniqueFd worker_stderr;
  wire::Hello hello;                  // to be sent; with an answer: as it was sent
  std::optional<wire::HelloAck> ack;  // of a warm one: judged, and the last thing it said
  wire::MessageId id;                 // of everything that is said to it
};

// Spawns on the keeper's thread; Hello is not sent yet.
Result<StartedWorker> StartWorker(Keeper& keeper, const WorkerStart& start,
                                  std::uint64_t request_id);

}  // namespace bulkhead::supervise
