// A thread of the hub's own, started when first needed. Start and Join are the owner's business:
// one thread at a time. The body must end on its own once the owner asks for it.
#pragma once

#include <pthread.h>

#include <functional>

namespace bulkhead::sketch {

class ServiceThread {
 public:
  explicit ServiceThread(std::function<void()> body) : body_(std::move(body)) {}

  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  // Joins.
  ~ServiceThread() { Join(); }

  // false: the system gives no thread now; a later call tries again.
  [[nodiscard]] bool EnsureRunning();
  void Join();

 private:
  const std::function<void()> body_;
  pthread_t thread_ = {};
  bool running_ = false;
};

}  // namespace bulkhead::sketch
