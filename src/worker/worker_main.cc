#include "worker/worker_main.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/errno_error.h"
#include "base/wait_set.h"
#include "wire/channel.h"
#include "wire/handshake.h"
#include "worker/serve_loop.h"

namespace bulkhead::worker {
namespace {

constexpr int kExitServed = 0;
constexpr int kExitNoProtocol = 1;

constexpr int kModuleSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

struct Incoming {
  wire::MessageId id;
  wire::ToWorker message;
};

// The next message, waiting as long as it takes; nullopt when the parent closed the channel
// instead.
Result<std::optional<Incoming>> ReceiveMessage(wire::Channel& channel) {
  const MonotonicClock clock;
  WaitSet wait_set;
  wire::Frame frame;
  for (;;) {
    switch (BH_TRY(channel.Receive(&frame))) {
      case wire::Channel::Read::kFrame:
        return Incoming{{frame.header.generation, frame.header.request_id},
                        BH_TRY(wire::DecodeToWorker(frame.header.kind, frame.body))};
      case wire::Channel::Read::kEnd:
        return std::nullopt;
      case wire::Channel::Read::kWouldBlock:
        break;
    }
    wait_set.Clear();
    wait_set.Add(channel.fd(), POLLIN, 0);
    BH_TRY(wait_set.Wait(clock, Deadline::Never()));
  }
}

tl::unexpected<Error> ProtocolError(std::string message) {
  return Fail(ErrorCode::kProtocol, std::move(message));
}

Result<LockdownRequest> RequestFrom(const wire::Hello& hello, wire::Channel& channel) {
  if (channel.descriptor_count() != hello.directories.size()) {
    return ProtocolError(fmt::format("Hello grants {} directories and carries {} descriptors",
                                     hello.directories.size(), channel.descriptor_count()));
  }
  LockdownRequest request;
  for (const wire::Hello::Directory& directory : hello.directories) {
    request.directories.push_back(
        {std::move(channel.TakeDescriptors(1).front()), directory.guest_path, directory.writable});
  }
  request.scratch_bytes = hello.scratch_bytes;
  request.limits.data_bytes = hello.compile_memory_bytes;
  request.limits.cpu_seconds = hello.cpu_seconds;
  request.limits.file_bytes_max = hello.file_bytes_max;
  request.sandbox = hello.sandbox;
  request.own_mounts = hello.own_mounts;
  request.own_user = hello.own_user;
  request.may_change_user = hello.may_change_user;
  return request;
}

// HelloAck goes out either way; nullopt: the lock-down failed and the parent knows.
Result<std::optional<LockedDown>> AnswerHello(wire::Channel& channel, wire::MessageId id,
                                              const wire::Hello& hello) {
  LockdownRequest request = BH_TRY(RequestFrom(hello, channel));
  Result<LockedDown> locked = LockDown(std::move(request));
  wire::HelloAck ack;
  ack.nonce = hello.nonce;
  ack.build_id = wire::BuildId();
  if (locked) {
    ack.mechanisms = locked->mechanisms;
  } else {
    ack.failed_mechanism = locked.error().reason;
    ack.failed_errno = locked.error().sys_errno;
  }
  BH_TRY(SendFully(channel, id, ack));
  if (!locked) {
    return std::nullopt;
  }
  return *std::move(locked);
}

Result<std::span<const std::uint8_t>> MapFile(BorrowedFd file, std::uint64_t bytes,
                                              std::string_view name) {
  if (bytes == 0) {
    return std::span<const std::uint8_t>();
  }
  void* const address = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) {
    return Fail(ErrnoError("mmap", name, errno));
  }
  return std::span<const std::uint8_t>(static_cast<const std::uint8_t*>(address), bytes);
}

// The parent admitted these very bytes: nobody can have changed them since, and nobody can from
// here on.
Result<std::span<const std::uint8_t>> MapModule(BorrowedFd module, std::uint64_t bytes) {
  const int seals = fcntl(module.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kModuleSeals) != kModuleSeals) {
    return ProtocolError("the module is not a sealed memory file");
  }
  const off_t size = lseek(module.get(), 0, SEEK_END);
  if (size < 0 || static_cast<std::uint64_t>(size) != bytes) {
    return ProtocolError(fmt::format("the module has {} bytes, announced were {}", size, bytes));
  }
  return MapFile(module, bytes, "module");
}

// Also from a file of a cache, which nobody but the parent's user can write and nobody changes.
Result<std::span<const std::uint8_t>> MapCode(BorrowedFd code, const wire::Execute& execute) {
  const off_t size = lseek(code.get(), 0, SEEK_END);
  const std::uint64_t announced = execute.code_offset + execute.code_bytes;
  if (size < 0 || static_cast<std::uint64_t>(size) != announced) {
    return ProtocolError(
        fmt::format("the code ends at {} of its file, announced was {}", size, announced));
  }
  return BH_TRY(MapFile(code, announced, "code")).subspan(execute.code_offset);
}

// Takes the descriptors in the order Execute documents.
Result<RunRequest> RequestFrom(wire::Execute execute, LockedDown locked, wire::Channel& channel) {
  const bool has_code = execute.code_bytes != 0;
  const int announced = 1 + static_cast<int>(has_code) + static_cast<int>(execute.has_stdin) +
                        static_cast<int>(execute.has_stdout) +
                        static_cast<int>(execute.has_stderr) + static_cast<int>(execute.has_output);
  if (channel.descriptor_count() != static_cast<std::size_t>(announced)) {
    return ProtocolError(fmt::format("Execute announces {} descriptors and carries {}", announced,
                                     channel.descriptor_count()));
  }
  const auto take_if = [&channel](bool present) {
    return present ? std::move(channel.TakeDescriptors(1).front()) : UniqueFd();
  };
  const UniqueFd module = take_if(true);
  const std::span<const std::uint8_t> bytes =
      BH_TRY(MapModule(module.borrow(), execute.module_bytes));
  const UniqueFd code = take_if(has_code);
  RunRequest request(std::move(locked.guest_phase));
  request.module = bytes;
  if (has_code) {
    request.code = BH_TRY(MapCode(code.borrow(), execute));
  }
  request.directories = std::move(locked.directories);
  request.stdin_fd = take_if(execute.has_stdin);
  request.stdout_fd = take_if(execute.has_stdout);
  request.stderr_fd = take_if(execute.has_stderr);
  request.output = take_if(execute.has_output);
  request.execute = std::move(execute);
  return request;
}

Status Serve(wire::Channel& channel, RunHandler& handler) {
  std::optional<Incoming> first = BH_TRY(ReceiveMessage(channel));
  if (!first || !std::holds_alternative<wire::Hello>(first->message)) {
    return ProtocolError("the first message has to be Hello");
  }
  const wire::MessageId id = first->id;
  std::optional<LockedDown> locked =
      BH_TRY(AnswerHello(channel, id, std::get<wire::Hello>(first->message)));
  if (!locked) {
    return {};
  }
  std::optional<Incoming> second = BH_TRY(ReceiveMessage(channel));
  if (!second) {
    return {};  // not needed after all
  }
  auto* const execute = std::get_if<wire::Execute>(&second->message);
  if (execute == nullptr || second->id != id) {
    return SendFully(channel, id,
                     MakeTerminal(wire::Terminal::Kind::kProtocolFailure,
                                  "Execute with the identity of Hello has to follow"));
  }
  RunRequest request = BH_TRY(RequestFrom(std::move(*execute), *std::move(locked), channel));
  BH_TRY(SendFully(channel, id, wire::Ready{request.execute.module_bytes}));
  return ServeRun(channel, id, handler, std::move(request));
}

bool ParentIsGone(const Error& error) {
  return error.sys_errno == EPIPE || error.sys_errno == ECONNRESET;
}

}  // namespace

void WorkerMain(RunHandler& handler) {
  // Readers may leave, and files may reach their limit: both are errors of a call, not ends of the
  // process.
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    BH_CHECK(std::signal(signal, SIG_IGN) != SIG_ERR);
  }
  wire::Channel channel(UniqueFd(kChannelDescriptor), wire::Direction::kToWorker);
  const Status served = Serve(channel, handler);
  if (served || ParentIsGone(served.error())) {
    _exit(kExitServed);
  }
  const std::string line = fmt::format("worker: {}\n", served.error().message);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(kExitNoProtocol);
}

}  // namespace bulkhead::worker
