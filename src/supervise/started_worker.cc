#include "supervise/started_worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/check.h"
#include "base/errno_error.h"
#include "wire/channel.h"
#include "wire/handshake.h"

namespace bulkhead::supervise {
namespace {

constexpr int kWorkerStderr = 2;
constexpr int kWorkerSocket = 3;

struct StderrPipe {
  UniqueFd parent;
  UniqueFd worker;
};

Result<StderrPipe> MakeStderrPipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Fail(ErrnoError("pipe2", "worker stderr", errno));
  }
  StderrPipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
    return Fail(ErrnoError("fcntl O_NONBLOCK", "worker stderr", errno));
  }
  return pipe;
}

}  // namespace

std::string WorkerStart::Key() const {
  const wire::MessageId any{1, 1};
  const auto frame = wire::EncodeFrame(any, wire::ToWorker(hello));
  BH_CHECK(frame.has_value());  // the request was validated
  std::string key =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", spec.program, spec.program_sha256.value_or(""),
                  spec.working_directory, spec.namespaces, expected.build.value_or(""),
                  fmt::join(expected.mechanisms, " "));
  for (const process::SpawnSpec::Limit& limit : spec.limits) {
    key += fmt::format("{}={}\n", limit.resource, limit.value);
  }
  key += fmt::format("{} {}\n", spec.tree_limits.memory_bytes, spec.tree_limits.tasks);
  return key + *frame;
}

Result<StartedWorker> StartWorker(Keeper& keeper, const WorkerStart& start,
                                  std::uint64_t request_id) {
  StartedWorker worker;
  wire::ChannelPair sockets = BH_TRY(wire::MakeChannelPair());
  StderrPipe pipe = BH_TRY(MakeStderrPipe());
  process::SpawnSpec spec = start.spec;
  spec.descriptors = {{sockets.worker.borrow(), kWorkerSocket},
                      {pipe.worker.borrow(), kWorkerStderr}};
  worker.process = BH_TRY(keeper.Spawn(spec));
  worker.socket = std::move(sockets.parent);
  worker.worker_stderr = std::move(pipe.parent);
  worker.hello = start.hello;
  worker.hello.nonce = wire::MakeNonce();
  worker.walls = worker.process->walls();
  worker.hello.own_mounts = worker.walls.own_mounts;
  worker.hello.own_user = worker.walls.own_user;
  worker.hello.may_change_user = worker.walls.may_change_user;
  worker.id = {1, request_id};
  return worker;
}

}  // namespace bulkhead::supervise
