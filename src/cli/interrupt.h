// Ctrl-C and its relatives: the first SIGINT, SIGTERM or SIGHUP cancels, the second forces.
//
// The three are blocked (threads made later inherit that) and read by a thread of this object;
// create it while the program has one thread. A signal that was ignored when the program started
// stays ignored. After destruction the signals have their default effect again.
#pragma once

#include <bulkhead/cancellation.h>
#include <bulkhead/result.h>

#include <signal.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/event_fd.h"
#include "base/unique_fd.h"

namespace bulkhead::cli {

class Interrupts {
 public:
  // kResourceExhausted or kIo when there is no descriptor or thread left.
  static Result<std::unique_ptr<Interrupts>> Create();

  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  CancelToken cancel() const { return cancel_.token(); }

  CancelToken force() const { return force_.token(); }

  // Number of the first signal, 0 as long as there was none. Any thread.
  int first_signal() const { return first_signal_.load(); }

 private:
  Interrupts(CancelSource cancel, CancelSource force, EventFd stop);

  Status Start();
  void Listen();
  void Take(int signal);

  CancelSource cancel_;
  CancelSource force_;
  EventFd stop_;
  UniqueFd signals_;
  sigset_t old_mask_{};
  std::atomic<int> first_signal_{0};
  std::thread thread_;
};

}  // namespace bulkhead::cli
