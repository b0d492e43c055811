// No sin: copies stdin to stdout, writes "honest output" to a granted output, completes. Outcome:
// worker-completed.
#include <unistd.h>

#include <array>

#include "support/worker_end.h"

using bulkhead::test::Completed;
using bulkhead::test::Die;
using bulkhead::test::WorkerEnd;
using bulkhead::test::WriteFully;

int main() {
  WorkerEnd worker;
  worker.StartGuest();
  std::array<char, 65536> buffer;
  while (worker.guest_stdin().valid()) {
    const ssize_t got = read(worker.guest_stdin().get(), buffer.data(), buffer.size());
    if (got < 0) {
      Die("cannot read stdin");
    }
    if (got == 0) {
      break;
    }
    if (worker.guest_stdout().valid()) {
      WriteFully(worker.guest_stdout(), {buffer.data(), static_cast<std::size_t>(got)});
    }
  }
  bulkhead::wire::Terminal terminal = Completed();
  if (worker.output().valid()) {
    WriteFully(worker.output(), "honest output");
    terminal.facts.output_created = true;
  }
  worker.Send(terminal);
  return 0;
}
