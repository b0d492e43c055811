#include "support/bystanders.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace bulkhead::test {
namespace {

constexpr int kWasSignalled = 1;

// Between a fork and an exit of a program with threads: system calls only.
[[noreturn]] void StandBy(int life) {
  sigset_t all;
  sigfillset(&all);
  const int signals = signalfd(-1, &all, SFD_CLOEXEC);
  for (int fd = 3; fd < 1024; ++fd) {  // it holds nothing of its parent's
    if (fd != life && fd != signals) {
      close(fd);
    }
  }
  pollfd either[] = {{life, POLLIN, 0}, {signals, POLLIN, 0}};
  while (poll(either, 2, -1) < 0 && errno == EINTR) {
  }
  // Both may be so: the signal decides.
  _exit((either[1].revents & POLLIN) != 0 ? kWasSignalled : 0);
}

}  // namespace

Bystanders::Bystanders(int count) {
  for (int i = 0; i < count; ++i) {
    Add();
  }
}

Bystanders::~Bystanders() {
  for (Bystander& bystander : bystanders_) {
    SendHome(std::move(bystander));
  }
}

bool Bystanders::Replace() {
  Bystander oldest = std::move(bystanders_.front());
  bystanders_.pop_front();
  gone_.insert(oldest.pid);
  const bool well = SendHome(std::move(oldest));
  Add();
  return well;
}

void Bystanders::Add() {
  int ends[2];
  BH_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd theirs(ends[0]);
  Bystander bystander;
  bystander.life.Reset(ends[1]);
  // Blocked from its first moment on, so that none is missed.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  bystander.pid = fork();
  if (bystander.pid == 0) {
    StandBy(theirs.get());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  BH_CHECK(bystander.pid > 0);
  reused_ += gone_.contains(bystander.pid) ? 1 : 0;
  bystanders_.push_back(std::move(bystander));
}

bool Bystanders::SendHome(Bystander bystander) {
  bystander.life.Reset();
  int status = 0;
  BH_CHECK(waitpid(bystander.pid, &status, 0) == bystander.pid);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace bulkhead::test
