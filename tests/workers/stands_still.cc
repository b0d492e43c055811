// Goes as far as its name says, writes a byte to the named pipe "reached" in its working directory,
// and goes no further, deaf to every signal. Outcome: whatever ends it there, and nothing left of
// it. Two run on after that: in_grace announces that it was asked to stop, floods_output that
// nobody takes what it writes.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "support/worker_end.h"
#include "wire/handshake.h"

namespace {

using bulkhead::BorrowedFd;
using bulkhead::UniqueFd;
using bulkhead::test::Die;
using bulkhead::test::HangForever;
using bulkhead::test::WorkerEnd;

constexpr int kChannelFd = 3;

void Announce() {
  const UniqueFd reached(open("reached", O_WRONLY | O_CLOEXEC));
  if (!reached.valid() || write(reached.get(), "!", 1) != 1) {
    Die("nobody waits to hear how far it got");
  }
}

[[noreturn]] void StandStill() {
  Announce();
  HangForever();
}

// Part of the next message, so that the rest stays in the socket.
void ReceiveSomeBytes() {
  pollfd entry{kChannelFd, POLLIN, 0};
  while (poll(&entry, 1, -1) < 0 && errno == EINTR) {
  }
  std::array<char, 10> bytes;
  if (recv(kChannelFd, bytes.data(), bytes.size(), 0) <= 0) {
    Die("no message to read a part of");
  }
}

[[noreturn]] void StandStillInTheMiddleOf(WorkerEnd& worker,
                                          const bulkhead::wire::FromWorker& message) {
  const std::string frame = worker.Frame(message);
  worker.SendBytes(frame.substr(0, frame.size() / 2));
  StandStill();
}

[[noreturn]] void SpinForever() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  Announce();
  for (;;) {
    getppid();
  }
}

[[noreturn]] void FloodOutput(BorrowedFd out) {
  const std::string much(1 << 16, 'f');
  fcntl(out.get(), F_SETFL, O_NONBLOCK);
  while (write(out.get(), much.data(), much.size()) > 0) {
  }
  Announce();
  for (;;) {
    bulkhead::test::WriteFully(out, much);
  }
}

// What is reached before the guest starts.
void BeforeTheGuest(std::string_view point, WorkerEnd& worker) {
  worker.AwaitHello();
  if (point == "stands_at_hello") {
    StandStill();
  }
  if (point == "stands_in_hello_ack") {
    bulkhead::wire::HelloAck ack;
    ack.nonce = worker.hello().nonce;
    ack.build_id = std::string(bulkhead::wire::BuildId());
    StandStillInTheMiddleOf(worker, ack);
  }
  worker.SendHelloAck();
  if (point == "stands_greeted") {
    StandStill();
  }
  if (point == "stands_in_execute") {
    ReceiveSomeBytes();
    StandStill();
  }
  worker.AwaitExecute();
  if (point == "stands_compiling") {
    StandStill();
  }
  if (point == "stands_in_ready") {
    StandStillInTheMiddleOf(worker, bulkhead::wire::Ready{worker.execute().module_bytes});
  }
  worker.SendReady();
  if (point == "stands_instantiated") {
    StandStill();
  }
  if (point == "stands_in_code") {  // a worker that only compiles: its output is the code
    bulkhead::test::WriteFully(worker.output(), "half of the code");
    StandStill();
  }
  worker.Send(bulkhead::wire::Started{1});
}

void WhileTheGuestRuns(std::string_view point, WorkerEnd& worker) {
  if (point == "stands_in_input") {
    char byte = 0;
    if (read(worker.guest_stdin().get(), &byte, 1) != 1) {
      Die("no input");
    }
  } else if (point == "stands_in_output") {
    bulkhead::test::WriteFully(worker.output(), "half of the output");
  } else if (point == "spins") {
    SpinForever();
  } else if (point == "floods_output") {
    FloodOutput(worker.guest_stdout());
  } else if (point == "stands_in_terminal") {
    StandStillInTheMiddleOf(worker, bulkhead::test::Completed());
  } else if (point == "stands_after_terminal") {
    worker.Send(bulkhead::test::Completed());
  } else if (point == "in_grace") {
    worker.AwaitCancel();
  } else if (point != "stands_running") {
    Die("unknown variant");
  }
  StandStill();
}

}  // namespace

int main(int /*argc*/, char** argv) {
  const std::string_view point = bulkhead::test::VariantName(argv[0]);
  if (point == "stands_at_start") {
    StandStill();
  }
  if (point == "stands_in_hello") {
    ReceiveSomeBytes();
    StandStill();
  }
  WorkerEnd worker;
  BeforeTheGuest(point, worker);
  WhileTheGuestRuns(point, worker);
}
