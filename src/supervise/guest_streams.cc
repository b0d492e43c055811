#include "supervise/guest_streams.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>

#include "base/errno_error.h"
#include "base/strings.h"

namespace bulkhead::supervise {
namespace {

constexpr std::size_t kReadBytes = 64U << 10;   // one read from the pipe
constexpr std::size_t kSpliceBytes = 1U << 20;  // one splice, as much as a pipe holds
// Before the exchange looks at everything else again.
constexpr int kSplicesPerTurn = 16;
constexpr std::size_t kTerminalBytes =
    PIPE_BUF;  // a terminal takes this much without blocking when it polls writable
constexpr std::size_t kCharacterBytes = 4;  // longest UTF-8 character

struct PipeEnds {
  UniqueFd read;
  UniqueFd write;
};

Result<PipeEnds> MakePipe() {
  int fds[2] = {-1, -1};
  if (pipe2(fds, O_CLOEXEC) != 0) {
    return Fail(ErrnoError("pipe2", "guest stream", errno));
  }
  return PipeEnds{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Status SetNonBlocking(BorrowedFd fd) {
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return Fail(ErrnoError("fcntl O_NONBLOCK", "guest stream", errno));
  }
  return {};
}

bool WouldBlock(int sys_errno) {
  return sys_errno == EAGAIN || sys_errno == EWOULDBLOCK || sys_errno == EINTR;
}

// Bytes at the end of `text` that begin a character whose rest has not arrived yet.
std::size_t IncompleteTail(std::string_view text) {
  for (std::size_t back = 1; back < kCharacterBytes && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) {
      continue;
    }
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

bool Writable(BorrowedFd fd) {
  pollfd entry{fd.get(), POLLOUT, 0};
  return poll(&entry, 1, 0) == 1;
}

}  // namespace

ScopedSigpipeBlock::ScopedSigpipeBlock() : was_pending_(false) {
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_only, &old_mask_);
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
}

ScopedSigpipeBlock::~ScopedSigpipeBlock() {
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  const timespec now{};
  if (!was_pending_) {
    while (sigtimedwait(&pipe_only, nullptr, &now) == SIGPIPE) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

Result<GuestOutput> GuestOutput::Create(Options options, UniqueFd* worker_end) {
  if (options.stream.kind == GuestStream::Kind::kNone) {
    GuestOutput discarded(options, Sink::kNone, UniqueFd());
    discarded.ended_ = true;  // nothing will ever come
    return discarded;
  }
  Sink sink = Sink::kCapture;
  if (options.stream.kind == GuestStream::Kind::kDescriptor) {
    struct stat info{};
    if (fstat(options.stream.descriptor, &info) != 0) {
      return Fail(
          ErrnoError(ErrorCode::kInvalidArgument, "fstat", "guest output descriptor", errno));
    }
    if (S_ISFIFO(info.st_mode)) {
      sink = Sink::kPipe;
    } else if (S_ISSOCK(info.st_mode)) {
      sink = Sink::kSocket;
    } else {
      sink = isatty(options.stream.descriptor) == 1 ? Sink::kTerminal : Sink::kFile;
    }
  }
  PipeEnds ends = BH_TRY(MakePipe());
  BH_TRY(SetNonBlocking(ends.read.borrow()));
  fcntl(ends.read.get(), F_SETPIPE_SZ, kPipeBytes);  // best effort
  *worker_end = std::move(ends.write);
  return GuestOutput(options, sink, std::move(ends.read));
}

void GuestOutput::AddTo(WaitSet& waits, int key) const {
  if (!open() && pending_.empty()) {
    return;
  }
  const bool has_destination = sink_ != Sink::kCapture && !closed_;
  if (has_destination) {
    // With no events asked, poll still tells when the reader leaves; a file never blocks.
    waits.Add(destination(), wait_for_destination_ ? POLLOUT : 0, key + 1);
  }
  if (!wait_for_destination_) {
    waits.Add(source_.borrow(), POLLIN, key);
  }
}

void GuestOutput::Pump(const WaitSet& waits, int key) {
  if (sink_ == Sink::kNone) {
    return;
  }
  const short out = waits.Ready(key + 1);
  if ((out & POLLERR) != 0 || ((out & POLLHUP) != 0 && sink_ != Sink::kFile)) {
    CloseDestination(EPIPE);
  }
  if ((out & POLLOUT) != 0) {
    wait_for_destination_ = false;
  }
  if (waits.Ready(key) != 0 || (out & POLLOUT) != 0) {
    MoveSome();
  }
}

void GuestOutput::MoveSome() {
  if (sink_ == Sink::kPipe && !closed_ && pending_.empty()) {
    for (int i = 0; i < kSplicesPerTurn && Splice(); ++i) {
    }
    return;
  }
  if (FlushPending()) {
    FillPending();
    FlushPending();
  }
}

std::size_t GuestOutput::Allowed(std::size_t want) const {
  return options_.bytes_max == 0 ? want
                                 : std::min<std::uint64_t>(want, options_.bytes_max - taken_);
}

bool GuestOutput::Splice() {
  const std::size_t allowed = Allowed(kSpliceBytes);
  if (allowed == 0) {
    FillPending();  // only looks whether the guest wrote past its limit
    return false;
  }
  const ssize_t moved = splice(source_.get(), nullptr, destination().get(), nullptr, allowed,
                               SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (moved > 0) {
    taken_ += static_cast<std::uint64_t>(moved);
    bytes_ += static_cast<std::uint64_t>(moved);
    return true;
  }
  if (moved == 0) {
    ended_ = true;
  } else if (!WouldBlock(errno)) {
    CloseDestination(errno);
  } else {
    // Either side may be the one that is not ready: if there is something to read, it is the
    // destination.
    wait_for_destination_ = Waiting() > 0;
  }
  return false;
}

void GuestOutput::FillPending() {
  std::array<char, kReadBytes> buffer;
  const std::size_t chunk =
      sink_ == Sink::kTerminal ? kTerminalBytes / kCharacterBytes : buffer.size();
  const std::size_t allowed = Allowed(chunk);
  const ssize_t got = read(source_.get(), buffer.data(), allowed == 0 ? buffer.size() : allowed);
  if (got < 0) {
    return;
  }
  if (got == 0) {
    ended_ = true;
    return;
  }
  const auto size = static_cast<std::size_t>(got);
  if (allowed == 0 || closed_) {
    limit_reached_ = limit_reached_ || !closed_;
    undelivered_ += size;
    return;
  }
  taken_ += size;
  pending_.append(buffer.data(), size);
}

bool GuestOutput::FlushPending() {
  while (!pending_.empty()) {
    if (closed_) {
      undelivered_ += pending_.size();
      pending_.clear();
      break;
    }
    std::size_t taken = pending_.size();
    if (sink_ == Sink::kTerminal && !ended_) {
      taken -= IncompleteTail(pending_);
      if (taken == 0) {
        break;
      }
    }
    const ssize_t written = WriteOut(std::string_view(pending_).substr(0, taken));
    if (written < 0) {
      if (!WouldBlock(errno)) {
        CloseDestination(errno);
        continue;
      }
      wait_for_destination_ = true;
      return false;
    }
    bytes_ += static_cast<std::uint64_t>(written);
    pending_.erase(0, static_cast<std::size_t>(written));
  }
  return true;
}

ssize_t GuestOutput::WriteOut(std::string_view text) {
  if (sink_ == Sink::kCapture) {
    const std::uint64_t room = options_.stream.capture_bytes_max - capture_.size();
    capture_ += text.substr(0, room);
    return static_cast<ssize_t>(text.size());
  }
  if (sink_ == Sink::kFile) {
    return write(destination().get(), text.data(), text.size());
  }
  if (sink_ == Sink::kSocket) {
    return send(destination().get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (!Writable(destination())) {
    errno = EAGAIN;
    return -1;
  }
  if (sink_ == Sink::kTerminal && options_.neutralise_terminal) {
    const std::string visible = Printable(text);
    return write(destination().get(), visible.data(), visible.size()) < 0
               ? -1
               : static_cast<ssize_t>(text.size());
  }
  return write(destination().get(), text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
}

void GuestOutput::CloseDestination(int sys_errno) {
  if (!closed_) {
    closed_ = true;
    destination_errno_ = sys_errno;
    wait_for_destination_ = false;
    undelivered_ += pending_.size();
    pending_.clear();
  }
}

std::uint64_t GuestOutput::Waiting() const {
  int bytes = 0;
  return source_.valid() && ioctl(source_.get(), FIONREAD, &bytes) == 0
             ? static_cast<std::uint64_t>(bytes)
             : 0;
}

void GuestOutput::EndIfEmpty() {
  ended_ = ended_ || Waiting() == 0;
}

void GuestOutput::Abandon() {
  undelivered_ += pending_.size() + Waiting();
  pending_.clear();
  ended_ = true;
}

Result<GuestInput> GuestInput::Create(const GuestStream& stream, UniqueFd* worker_end) {
  GuestInput input;
  if (stream.kind == GuestStream::Kind::kNone) {
    return input;
  }
  if (isatty(stream.descriptor) != 1) {
    worker_end->Reset(fcntl(stream.descriptor, F_DUPFD_CLOEXEC, 0));
    if (!worker_end->valid()) {
      return Fail(ErrnoError(ErrorCode::kInvalidArgument, "dup", "guest stdin descriptor", errno));
    }
    return input;
  }
  PipeEnds ends = BH_TRY(MakePipe());
  BH_TRY(SetNonBlocking(ends.write.borrow()));
  *worker_end = std::move(ends.read);
  input.sink_ = std::move(ends.write);
  input.source_ = stream.descriptor;
  return input;
}

void GuestInput::AddTo(WaitSet& waits, int key) const {
  if (!sink_.valid()) {
    return;
  }
  // Without pending bytes the sink is only watched for the guest closing its stdin.
  waits.Add(sink_.borrow(), pending_.empty() ? 0 : POLLOUT, key + 1);
  if (pending_.empty()) {
    waits.Add(BorrowedFd(source_), POLLIN, key);
  }
}

void GuestInput::Pump(const WaitSet& waits, int key) {
  if (!sink_.valid()) {
    return;
  }
  if ((waits.Ready(key + 1) & POLLERR) != 0) {
    sink_.Reset();
    return;
  }
  if (waits.Ready(key) != 0) {
    std::array<char, PIPE_BUF> buffer;
    const ssize_t got = read(source_, buffer.data(), buffer.size());
    if (got == 0 || (got < 0 && !WouldBlock(errno))) {
      sink_.Reset();  // end of input
      return;
    }
    pending_.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  if (!pending_.empty()) {
    const ssize_t written = write(sink_.get(), pending_.data(), pending_.size());
    if (written > 0) {
      pending_.erase(0, static_cast<std::size_t>(written));
    } else if (written < 0 && !WouldBlock(errno)) {
      sink_.Reset();
    }
  }
}

}  // namespace bulkhead::supervise
