// Preloaded into a program, this makes its wall clock jump: two hours ahead half a second after the
// start, and two hours back (four from there) after a second. Only CLOCK_REALTIME is touched, which
// is what an administrator or a time daemon can step.
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace {

constexpr time_t kStepSeconds = 2L * 3600;
constexpr std::int64_t kFirstStepMs = 500;
constexpr std::int64_t kSecondStepMs = 1000;

std::int64_t MonotonicMs() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000} + now.tv_nsec / 1'000'000;
}

const std::int64_t kStartMs = MonotonicMs();

time_t Jump() {
  const std::int64_t since_start_ms = MonotonicMs() - kStartMs;
  if (since_start_ms < kFirstStepMs) {
    return 0;
  }
  return since_start_ms < kSecondStepMs ? kStepSeconds : -kStepSeconds;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the C library's names
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long failed = syscall(SYS_clock_gettime, clock, now);
  if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += Jump();
  }
  return static_cast<int>(failed);
}

extern "C" int gettimeofday(timeval* now, void* /*zone*/) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

extern "C" time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) {
    *out = now.tv_sec;
  }
  return now.tv_sec;
}

// NOLINTEND(readability-identifier-naming)
