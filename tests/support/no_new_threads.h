// A place where the system refuses to make threads, as it does at a limit of processes, but for one
// thread only: what it starts is refused with EAGAIN, by a filter in the kernel that ends with it.
// Header-only, for tests of both towers.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <functional>
#include <iterator>
#include <thread>

namespace bulkhead::test {

// For the calling thread, and for ever.
inline bool RefuseNewThreads() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// Runs `body` on a thread of its own that gets no further one. false: there is no seccomp, and
// nothing was run.
inline bool WithoutNewThreads(const std::function<void()>& body) {
  bool refused = false;
  std::thread([&] {
    refused = RefuseNewThreads();
    if (refused) {
      body();
    }
  }).join();
  return refused;
}

}  // namespace bulkhead::test
