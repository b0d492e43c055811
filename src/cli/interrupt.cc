#include "cli/interrupt.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/errno_error.h"
#include "base/wait_set.h"

namespace bulkhead::cli {
namespace {

enum Key { kStop, kSignal };

bool IsIgnored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Without those the parent chose to ignore (nohup, background jobs): a blocked signal is queued
// even if ignored.
sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!IsIgnored(signal)) {
      sigaddset(&set, signal);
    }
  }
  return set;
}

}  // namespace

Interrupts::Interrupts(CancelSource cancel, CancelSource force, EventFd stop)
    : cancel_(std::move(cancel)), force_(std::move(force)), stop_(std::move(stop)) {}

Result<std::unique_ptr<Interrupts>> Interrupts::Create() {
  CancelSource cancel = BH_TRY(CancelSource::Create());
  CancelSource force = BH_TRY(CancelSource::Create());
  EventFd stop = BH_TRY(EventFd::Create());
  std::unique_ptr<Interrupts> interrupts(
      new Interrupts(std::move(cancel), std::move(force), std::move(stop)));
  BH_TRY(interrupts->Start());
  return interrupts;
}

Status Interrupts::Start() {
  const sigset_t set = StopSignals();
  signals_.Reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) {
    return Fail(ErrnoError("signalfd", "", errno));
  }
  pthread_sigmask(SIG_BLOCK, &set, &old_mask_);
  try {
    thread_ = std::thread(&Interrupts::Listen, this);
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
    return Fail(
        ErrnoError(ErrorCode::kResourceExhausted, "pthread_create", "", error.code().value()));
  }
  return {};
}

Interrupts::~Interrupts() {
  if (thread_.joinable()) {
    stop_.Signal();
    thread_.join();
    pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  }
}

void Interrupts::Listen() {
  const MonotonicClock clock;
  WaitSet waits;
  for (;;) {
    waits.Clear();
    waits.Add(stop_.fd(), POLLIN, kStop);
    waits.Add(signals_.borrow(), POLLIN, kSignal);
    if (!waits.Wait(clock, Deadline::Never()) || waits.Ready(kStop) != 0) {
      return;
    }
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      Take(static_cast<int>(info.ssi_signo));
    }
  }
}

void Interrupts::Take(int signal) {
  int none = 0;
  if (first_signal_.compare_exchange_strong(none, signal)) {
    cancel_.Cancel();
  } else {
    force_.Cancel();
  }
}

}  // namespace bulkhead::cli
