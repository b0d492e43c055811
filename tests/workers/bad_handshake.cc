// Answers Hello wrongly, as its name says, and stays alive. Outcome: worker-protocol; for
// lock_down_failed, which says that it could not lock itself down, worker-launch.
#include "support/worker_end.h"
#include "wire/handshake.h"

int main(int /*argc*/, char** argv) {
  const std::string_view variant = bulkhead::test::VariantName(argv[0]);
  bulkhead::test::WorkerEnd worker;
  worker.AwaitHello();
  bulkhead::wire::HelloAck ack;
  ack.nonce = worker.hello().nonce;
  ack.build_id = std::string(bulkhead::wire::BuildId());
  if (variant == "wrong_nonce") {
    ack.nonce[15] = static_cast<std::uint8_t>(ack.nonce[15] ^ 1U);
  } else if (variant == "wrong_build") {
    ack.build_id = "another build";
  } else if (variant == "lock_down_failed") {
    ack.failed_mechanism = "seccomp";
    ack.failed_errno = 38;
  } else {
    bulkhead::test::Die("unknown variant");
  }
  worker.Send(ack);
  if (variant ==
      "wrong_build") {  // right but for its build: an accepting parent gets an honest worker
    worker.AwaitExecute();
    worker.SendReady();
    worker.Send(bulkhead::wire::Started{1});
    worker.Send(bulkhead::test::Completed());
    return 0;
  }
  bulkhead::test::HangForever();
}
