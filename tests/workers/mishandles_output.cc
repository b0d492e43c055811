// Completes, but treats its output in the way its name says. Outcome: worker-output-commit and an
// untouched destination; for output_empty, which created an empty file on purpose,
// worker-completed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "support/worker_end.h"

namespace {

// More than the tests grant, without needing the disk space.
constexpr off_t kTooBig = 1 << 20;

}  // namespace

int main(int /*argc*/, char** argv) {
  signal(SIGXFSZ, SIG_IGN);
  const std::string_view variant = bulkhead::test::VariantName(argv[0]);
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  bulkhead::wire::Terminal terminal = bulkhead::test::Completed();
  if (variant == "output_too_big") {
    terminal.facts.output_created = true;
    if (ftruncate(worker.output().get(), kTooBig) != 0 && errno != EFBIG) {
      bulkhead::test::Die("ftruncate");
    }
  } else if (variant == "output_empty") {
    terminal.facts.output_created = true;
  } else if (variant != "output_never") {
    bulkhead::test::Die("unknown variant");
  }
  worker.Send(terminal);
  return 0;
}
