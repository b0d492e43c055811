// Leaves descendants behind that hold every descriptor it had, channel included, in its group, in
// sessions of their own, twice removed, or in great number; then completes (names starting with
// "forks") or hangs (names starting with "abandons"). Outcome: worker-completed (N13), or
// forced-containment (G01), and no descendant alive.
#include <unistd.h>

#include "support/worker_end.h"

namespace {

// Enough to be a bother, few enough for the machine that tests.
constexpr int kManyForks = 100;

void ForkHanging(bool own_session, bool twice) {
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
  bulkhead::test::HangForever();
}

}  // namespace

int main(int /*argc*/, char** argv) {
  const std::string_view variant = bulkhead::test::VariantName(argv[0]);
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  const bool own_session = variant.find("setsid") != std::string_view::npos;
  const bool twice = variant.find("twice") != std::string_view::npos;
  const int forks = variant.find("many") != std::string_view::npos ? kManyForks : 1;
  for (int i = 0; i < forks; ++i) {
    ForkHanging(own_session, twice);
  }
  if (variant.starts_with("abandons")) {
    bulkhead::test::HangForever();
  }
  worker.Send(bulkhead::test::Completed());
  return 0;
}
