// Leaves descendants behind that hold every descriptor it had, channel included, in its group, in
// sessions of their own, twice removed, or in great number; ones that run away (each forks the next
// and ends), or write to the output as long as they live; then completes (names starting with
// "forks") or hangs (names starting with "abandons"). Outcome: worker-completed (N13), or
// forced-containment (G01), and no descendant alive.
#include <unistd.h>

#include <csignal>

#include "support/worker_end.h"

namespace {

// Enough to be a bother, few enough for the machine that tests.
constexpr int kManyForks = 100;

// Each generation in a session of its own, deaf to what can be ignored, and soon gone.
[[noreturn]] void RunAway() {
  for (;;) {
    setsid();
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (fork() > 0) {
      _exit(0);
    }
  }
}

[[noreturn]] void WriteForEver(bulkhead::BorrowedFd output) {
  for (unsigned round = 0;; ++round) {
    const std::string_view text = round % 2 == 0 ? "written late" : "WRITTEN LATE";
    if (pwrite(output.get(), text.data(), text.size(), 0) < 0) {
      _exit(bulkhead::test::kBrokenScript);
    }
  }
}

// What the child does instead of hanging, by the variant's name.
[[noreturn]] void Live(std::string_view variant, bulkhead::BorrowedFd output) {
  if (variant.find("runaway") != std::string_view::npos) {
    RunAway();
  }
  if (variant.find("writer") != std::string_view::npos) {
    WriteForEver(output);
  }
  bulkhead::test::HangForever();
}

void Fork(std::string_view variant, bulkhead::BorrowedFd output) {
  const bool own_session = variant.find("setsid") != std::string_view::npos;
  const bool twice = variant.find("twice") != std::string_view::npos;
  const pid_t child = fork();
  if (child < 0) {
    bulkhead::test::Die("fork failed");
  }
  if (child != 0) {
    return;
  }
  if (own_session) {
    setsid();
  }
  if (twice && fork() != 0) {
    _exit(0);
  }
  Live(variant, output);
}

}  // namespace

int main(int /*argc*/, char** argv) {
  const std::string_view variant = bulkhead::test::VariantName(argv[0]);
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  const int forks = variant.find("many") != std::string_view::npos ? kManyForks : 1;
  for (int i = 0; i < forks; ++i) {
    Fork(variant, worker.output());
  }
  if (variant.starts_with("abandons")) {
    bulkhead::test::HangForever();
  }
  bulkhead::wire::Terminal terminal = bulkhead::test::Completed();
  terminal.facts.output_created = worker.output().valid();
  worker.Send(terminal);
  return 0;
}
