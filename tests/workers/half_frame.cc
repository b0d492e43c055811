// Writes a header that announces 1,000 bytes and 100 bytes of body, then does what its name says
// (G20). Outcome: of sigkill and exit3 worker-unexpected-exit, of silent the stop, of close
// worker-protocol.
#include <unistd.h>

#include <csignal>

#include "support/worker_end.h"

int main(int /*argc*/, char** argv) {
  const std::string_view variant = bulkhead::test::VariantName(argv[0]);
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  const auto header = bulkhead::wire::EncodeHeader(
      {bulkhead::wire::Kind::kTerminal, 1000, worker.id().generation, worker.id().request_id});
  worker.SendBytes(std::string(header.data(), header.size()) + std::string(100, '\0'));
  if (variant == "half_frame_sigkill") {
    kill(getpid(), SIGKILL);
  }
  if (variant == "half_frame_exit3") {
    return 3;
  }
  if (variant == "half_frame_close") {
    worker.CloseChannel();
  }
  bulkhead::test::HangForever();
}
