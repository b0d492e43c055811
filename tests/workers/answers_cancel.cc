// Waits for Cancel and answers it as its name says. Outcome: the latched stop if the answer is
// legal and the exit clean; else what the fault is (rows B6, B8, B8' with a stop latched).
#include <csignal>
#include <ctime>

#include "support/worker_end.h"

using bulkhead::test::OfKind;
using bulkhead::wire::Terminal;

int main(int /*argc*/, char** argv) {
  const std::string_view variant = bulkhead::test::VariantName(argv[0]);
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  if (worker.output().valid()) {
    bulkhead::test::WriteFully(worker.output(), "too late");
  }
  worker.AwaitCancel();
  if (variant == "answers_slowly") {  // within the grace
    const timespec pause{0, 300'000'000};
    nanosleep(&pause, nullptr);
    worker.Send(OfKind(Terminal::Kind::kCancelled));
  } else if (variant == "answers_cancelled") {
    worker.Send(OfKind(Terminal::Kind::kCancelled));
  } else if (variant == "answers_deadline") {
    worker.Send(OfKind(Terminal::Kind::kDeadlineExceeded));
  } else if (variant == "answers_trapped") {
    worker.Send(OfKind(Terminal::Kind::kTrapped));
  } else if (variant == "answers_completed" || variant == "answers_then_exit3") {
    worker.Send(bulkhead::test::Completed());
  } else if (variant == "answers_garbage") {
    worker.SendBytes(std::string(64, 'x'));
    bulkhead::test::HangForever();
  } else if (variant == "answers_crash") {
    raise(SIGSEGV);
  } else if (variant != "answers_exit0") {
    bulkhead::test::Die("unknown variant");
  }
  return variant == "answers_then_exit3" ? 3 : 0;
}
