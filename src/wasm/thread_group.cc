#include "wasm/thread_group.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace bulkhead::wasm {
namespace {

// Below each stack: room to run into before other memory is reached.
constexpr std::size_t kGuardBytes = 64U << 10;

bool StartThread(std::size_t stack_bytes, void* (*main)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setguardsize(&attributes, kGuardBytes);
  pthread_t thread{};
  const bool started = pthread_attr_setstacksize(&attributes, stack_bytes + kGuardBytes) == 0 &&
                       pthread_create(&thread, &attributes, main, argument) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace

struct ThreadGroup::Start {
  ThreadGroup* group;
  ThreadStart thread;
};

ThreadGroup::ThreadGroup(const Settings& settings, StopQuestion stopped, Body body)
    : settings_(settings),
      stopped_(std::move(stopped)),
      body_(std::move(body)),
      fuel_left_(settings.fuel - std::min(settings.fuel, settings.limits.root_fuel)) {}

std::optional<std::uint32_t> ThreadGroup::Spawn(std::int32_t argument) {
  JoinFinished();
  auto start = std::make_unique<Start>(Start{this, {.argument = argument}});
  if (!Reserve(start->thread)) {
    return std::nullopt;
  }
  const ThreadStart accepted = start->thread;
  if (!StartThread(settings_.stack_bytes, &ThreadGroup::Main, start.get())) {
    Release(accepted.fuel);
    return std::nullopt;
  }
  // NOLINTNEXTLINE(bugprone-unused-return-value): it is the thread's now
  start.release();
  return accepted.thread;
}

bool ThreadGroup::Reserve(ThreadStart& start) {
  const wire::ThreadLimits& limits = settings_.limits;
  const std::lock_guard lock(mutex_);
  const bool metered = settings_.fuel != 0;
  const bool exhausted = live_ >= limits.live_max ||
                         (limits.total_max != 0 && accepted_ >= limits.total_max) ||
                         last_thread_ == kThreadIdMax;
  std::uint32_t* const refused = stopped_()                                  ? &rejections_.epoch
                                 : metered && fuel_left_ < limits.child_fuel ? &rejections_.fuel
                                 : closed_                                   ? &rejections_.closing
                                 : exhausted                                 ? &rejections_.capacity
                                                                             : nullptr;
  if (refused != nullptr) {
    ++*refused;
    return false;
  }
  ++live_;
  ++accepted_;
  start.thread = ++last_thread_;
  if (metered) {
    start.fuel = limits.child_fuel;
    fuel_left_ -= start.fuel;
  }
  return true;
}

void ThreadGroup::Release(std::uint64_t fuel) {
  const std::lock_guard lock(mutex_);
  ++rejections_.capacity;
  fuel_left_ += fuel;
  --live_;
  --accepted_;
  idle_.notify_all();
}

void* ThreadGroup::Main(void* start) {
  const std::unique_ptr<Start> own(static_cast<Start*>(start));
  own->group->Finish(*own, own->group->body_(own->thread));
  return nullptr;
}

void ThreadGroup::Finish(const Start& start, std::uint64_t fuel_left) {
  const std::lock_guard lock(mutex_);
  fuel_used_ += start.thread.fuel - fuel_left;
  if (settings_.limits.child_fuel_returns) {
    fuel_left_ += fuel_left;
  }
  --live_;
  finished_.push_back(pthread_self());
  idle_.notify_all();
}

void ThreadGroup::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void ThreadGroup::Join() {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return live_ == 0; });
  }
  JoinFinished();
}

void ThreadGroup::JoinFinished() {
  std::vector<pthread_t> finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  for (const pthread_t thread : finished) {
    pthread_join(thread, nullptr);
  }
}

wire::Terminal::Rejections ThreadGroup::rejections() const {
  const std::lock_guard lock(mutex_);
  return rejections_;
}

std::uint64_t ThreadGroup::fuel_used() const {
  const std::lock_guard lock(mutex_);
  return fuel_used_;
}

}  // namespace bulkhead::wasm
