#include "support/worker_end.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "wire/handshake.h"

namespace bulkhead::test {
namespace {

constexpr int kChannelFd = 3;

void WaitFor(BorrowedFd fd, short events) {
  pollfd entry{fd.get(), events, 0};
  while (poll(&entry, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

void Die(std::string_view why) {
  WriteFully(BorrowedFd(STDERR_FILENO), "test worker: " + std::string(why) + "\n");
  _exit(kBrokenScript);
}

void HangForever() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  for (;;) {
    pause();
  }
}

std::string_view VariantName(const char* argv0) {
  const std::string_view path(argv0);
  return path.substr(path.rfind('/') + 1);
}

void WriteFully(BorrowedFd fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EAGAIN) {
      WaitFor(fd, POLLOUT);
    } else if (written < 0 && errno != EINTR) {
      _exit(kBrokenScript);
    } else if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
}

wire::Terminal OfKind(wire::Terminal::Kind kind) {
  wire::Terminal terminal;
  terminal.kind = kind;
  return terminal;
}

wire::Terminal Completed() {
  wire::Terminal terminal = OfKind(wire::Terminal::Kind::kCompleted);
  terminal.completed_as = wire::Terminal::CompletedAs::kStarted;
  return terminal;
}

WorkerEnd::WorkerEnd() : channel_(UniqueFd(kChannelFd), wire::Direction::kToWorker) {}

wire::Channel::Read WorkerEnd::Receive(wire::Frame* frame) {
  for (;;) {
    const Result<wire::Channel::Read> read = channel_.Receive(frame);
    if (!read) {
      Die(read.error().message);
    }
    if (*read != wire::Channel::Read::kWouldBlock) {
      return *read;
    }
    WaitFor(channel_.fd(), POLLIN);
  }
}

wire::ToWorker WorkerEnd::AwaitMessage() {
  wire::Frame frame;
  if (Receive(&frame) == wire::Channel::Read::kEnd) {
    Die("the parent closed the channel");
  }
  id_ = {frame.header.generation, frame.header.request_id};
  Result<wire::ToWorker> message = wire::DecodeToWorker(frame.header.kind, frame.body);
  if (!message) {
    Die(message.error().message);
  }
  return *std::move(message);
}

void WorkerEnd::AwaitHello() {
  wire::ToWorker message = AwaitMessage();
  wire::Hello* hello = std::get_if<wire::Hello>(&message);
  if (hello == nullptr) {
    Die("the first message is not Hello");
  }
  hello_ = std::move(*hello);
  directories_ = channel_.TakeDescriptors(hello_.directories.size());
  if (directories_.size() != hello_.directories.size()) {
    Die("a directory descriptor is missing");
  }
  HoldAliveLock();
}

void WorkerEnd::HoldAliveLock() {
  if (directories_.empty() || !hello_.directories[0].writable) {
    return;
  }
  alive_.Reset(openat(directories_[0].get(), "alive", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!alive_.valid() || flock(alive_.get(), LOCK_EX | LOCK_NB) != 0) {
    Die("cannot lock the file alive");
  }
}

UniqueFd WorkerEnd::TakeOne(std::string_view what) {
  std::vector<UniqueFd> taken = channel_.TakeDescriptors(1);
  if (taken.empty()) {
    Die("missing descriptor: " + std::string(what));
  }
  return std::move(taken.front());
}

void WorkerEnd::AwaitExecute() {
  wire::ToWorker message = AwaitMessage();
  wire::Execute* execute = std::get_if<wire::Execute>(&message);
  if (execute == nullptr) {
    Die("the second message is not Execute");
  }
  execute_ = std::move(*execute);
  module_ = TakeOne("module");
  if (execute_.code_bytes != 0) {
    TakeOne("code");  // nothing here runs it
  }
  if (execute_.has_stdin) {
    stdin_ = TakeOne("stdin");
  }
  if (execute_.has_stdout) {
    stdout_ = TakeOne("stdout");
  }
  if (execute_.has_stderr) {
    stderr_ = TakeOne("stderr");
  }
  if (execute_.has_output) {
    output_ = TakeOne("output");
  }
  if (channel_.descriptor_count() != 0) {
    Die("more descriptors than the message names");
  }
}

void WorkerEnd::SendHelloAck() {
  wire::HelloAck ack;
  ack.nonce = hello_.nonce;
  ack.build_id = std::string(wire::BuildId());
  Send(ack);
}

void WorkerEnd::Begin() {
  AwaitHello();
  SendHelloAck();
}

void WorkerEnd::SendReady() {
  Send(wire::Ready{execute_.module_bytes});
}

void WorkerEnd::StartGuest() {
  Begin();
  AwaitExecute();
  SendReady();
  Send(wire::Started{1});
}

void WorkerEnd::AwaitCancel() {
  wire::Frame frame;
  if (Receive(&frame) == wire::Channel::Read::kFrame && frame.header.kind != wire::Kind::kCancel) {
    Die("expected Cancel");
  }
}

std::string WorkerEnd::Frame(const wire::FromWorker& message) const {
  Result<std::string> frame = wire::EncodeFrame(id_, message);
  if (!frame) {
    Die(frame.error().message);
  }
  return *std::move(frame);
}

void WorkerEnd::SendBytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(channel_.fd().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      WaitFor(channel_.fd(), POLLOUT);
    } else if (errno != EINTR) {
      Die("the parent is gone");
    }
  }
}

void WorkerEnd::CloseChannel() {
  close(channel_.fd().get());
}

}  // namespace bulkhead::test
