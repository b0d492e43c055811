// An honest run that writes all there is: HelloAck, Ready, Started, Trace, 64 KiB of stdout, an
// output, Terminal. Its first directory's guest path names a number of bytes, "/100": having sent
// so many of channel and stdout together, it kills itself. Outcome: worker-unexpected-exit;
// worker-completed if there are fewer.
//
// The trace says where stdout begins and where all ends.
#include "support/dies_at_byte.h"

#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "support/worker_end.h"
#include "wire/handshake.h"

namespace bulkhead::test {
namespace {

class DyingWorker {
 public:
  void Run() {
    worker_.AwaitHello();
    left_ = std::strtoull(worker_.hello().directories.at(0).guest_path.c_str() + 1, nullptr, 10);
    wire::HelloAck ack;
    ack.nonce = worker_.hello().nonce;
    ack.build_id = std::string(wire::BuildId());
    const std::string ack_frame = worker_.Frame(ack);
    Send(ack_frame);
    worker_.AwaitExecute();
    std::string rest = worker_.Frame(wire::Ready{worker_.execute().module_bytes}) +
                       worker_.Frame(wire::Started{1});
    wire::Terminal terminal = Completed();
    terminal.facts.output_created = true;
    const std::string last = worker_.Frame(terminal);
    const std::size_t head =
        ack_frame.size() + rest.size() + worker_.Frame(wire::Trace{Places(0, 0)}).size();
    rest += worker_.Frame(wire::Trace{Places(head, head + kDyingStdoutBytes + last.size())});
    Send(rest);
    const std::string text = DyingStdout();
    WriteFully(worker_.guest_stdout(), Allowed(text));
    DieIfDue(text);
    WriteFully(worker_.output(), kDyingOutput);
    Send(last);
    // At the very end of the transcript as well as before it.
    DieIfDue(std::string(1, ' '));
  }

 private:
  static std::string Places(std::size_t stdout_at, std::size_t end) {
    return fmt::format("{:08} {:08}", stdout_at, end);
  }

  std::string_view Allowed(std::string_view bytes) const { return bytes.substr(0, left_); }

  void DieIfDue(std::string_view bytes) {
    if (left_ < bytes.size()) {
      kill(getpid(), SIGKILL);
    }
    left_ -= bytes.size();
  }

  void Send(std::string_view bytes) {
    worker_.SendBytes(Allowed(bytes));
    DieIfDue(bytes);
  }

  WorkerEnd worker_;
  std::size_t left_ = 0;
};

}  // namespace
}  // namespace bulkhead::test

int main() {
  bulkhead::test::DyingWorker().Run();
}
