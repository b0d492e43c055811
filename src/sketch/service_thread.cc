#include "sketch/service_thread.h"

#include <cstddef>

#include "base/check.h"

namespace bulkhead::sketch {
namespace {

// The default of 8 MiB would count against the guest's memory budget (RLIMIT_DATA includes stacks);
// the bodies are shallow.
constexpr std::size_t kStackBytes = std::size_t{256} * 1024;

void* RunBody(void* body) {
  (*static_cast<const std::function<void()>*>(body))();
  return nullptr;
}

}  // namespace

bool ServiceThread::EnsureRunning() {
  if (running_) {
    return true;
  }
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) {
    return false;
  }
  BH_CHECK(pthread_attr_setstacksize(&attributes, kStackBytes) == 0);
  // The cast takes away a const that RunBody puts back.
  auto* body = const_cast<std::function<void()>*>(&body_);
  running_ = pthread_create(&thread_, &attributes, RunBody, body) == 0;
  BH_CHECK(pthread_attr_destroy(&attributes) == 0);
  return running_;
}

void ServiceThread::Join() {
  if (running_) {
    BH_CHECK(pthread_join(thread_, nullptr) == 0);
    running_ = false;
  }
}

}  // namespace bulkhead::sketch
