// The same attempts in a program of nothing but a C library, beneath the filters of a worker: what
// a filter permits must not depend on which library asks. Built with the project's compiler and,
// where there is one, statically with another C library.
//
// Started by under_filters with the filters on descriptors 4 and 5. Arguments: the attempt's name
// or "ordinary work", "lock-down" or "guest-phase", a sibling's process id, a file, a path where
// nothing is. Prints "result N".
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hostile/attempts.h"

namespace {

using bulkhead::hostile::Attempt;
using bulkhead::hostile::Target;

constexpr int kLockdownFilter = 4;
constexpr int kGuestPhaseFilter = 5;
constexpr size_t kFilterInstructionsMax = 4096;
constexpr rlim_t kDataBytes = 256U << 20;

[[noreturn]] void Die(const char* what) {
  perror(what);
  _exit(70);
}

void InstallFilter(int fd) {
  static sock_filter code[kFilterInstructionsMax];
  const ssize_t bytes = pread(fd, code, sizeof code, 0);
  if (bytes <= 0) {
    Die("read filter");
  }
  const sock_fprog program = {
      static_cast<unsigned short>(static_cast<size_t>(bytes) / sizeof code[0]), code};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
    Die("seccomp");
  }
}

// What a worker has given up before its filter.
void GiveUpRights() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  const rlimit data = {kDataBytes, kDataBytes};
  if (setrlimit(RLIMIT_DATA, &data) != 0 || syscall(SYS_capset, &header, none) != 0 ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    Die("rights");
  }
}

void* Count(void* counter) {
  ++*static_cast<int*>(counter);
  return nullptr;
}

// What every program does with its C library: 0 if all of it works.
// NOLINTBEGIN(cppcoreguidelines-no-malloc): there is no C++ library here
long OrdinaryWork() {
  constexpr size_t kBytes = 1U << 20;
  char* const memory = static_cast<char*>(malloc(kBytes));
  if (memory == nullptr) {
    return 1;
  }
  memset(memory, 'x', kBytes);
  free(memory);
  int counter = 0;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, Count, &counter) != 0 ||
      pthread_join(thread, nullptr) != 0 || counter != 1) {
    return 2;
  }
  timespec now;
  const timespec moment = {0, 1};
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0 || nanosleep(&moment, nullptr) != 0) {
    return 3;
  }
  return 0;
}

// NOLINTEND(cppcoreguidelines-no-malloc)

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    Die("usage");
  }
  Target target;
  target.parent = getppid();
  target.sibling = strtol(argv[3], nullptr, 10);
  target.secret = argv[4];
  target.new_path = argv[5];
  target.held_stream = STDOUT_FILENO;
  const Attempt* const attempt = bulkhead::hostile::FindAttempt(argv[1]);
  if (attempt == nullptr && strcmp(argv[1], "ordinary work") != 0) {
    Die("no such attempt");
  }
  GiveUpRights();
  InstallFilter(kLockdownFilter);
  if (strcmp(argv[2], "guest-phase") == 0) {
    InstallFilter(kGuestPhaseFilter);
  }
  printf("result %ld\n", attempt == nullptr ? OrdinaryWork() : attempt->act(target));
  fflush(stdout);
  _exit(0);
}
