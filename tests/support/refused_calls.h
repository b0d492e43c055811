// A place where the system refuses certain calls: by a filter in the kernel that binds one thread,
// what it starts, and nothing else. Header-only, for tests of both towers.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <thread>
#include <vector>

namespace bulkhead::test {

// For the calling thread, and for ever: these calls fail with `answer`, an errno. false: there is
// no seccomp.
inline bool RefuseCalls(std::initializer_list<unsigned> numbers, unsigned answer) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned number : numbers) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | answer));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// Runs `body` on a thread of its own that gets no further one, as at a limit of processes. false:
// there is no seccomp, and nothing was run.
inline bool WithoutNewThreads(const std::function<void()>& body) {
  bool refused = false;
  std::thread([&] {
    refused = RefuseCalls({SYS_clone3, SYS_clone}, EAGAIN);
    if (refused) {
      body();
    }
  }).join();
  return refused;
}

}  // namespace bulkhead::test
