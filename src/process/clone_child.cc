#include "process/clone_child.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/errno_error.h"

namespace bulkhead::process {
namespace {

// The child calls a few levels deep with one 4 KiB buffer; the rest is margin for the kernel's
// signal frames.
constexpr std::size_t kStackBytes = std::size_t{64} * 1024;
constexpr std::size_t kGuardBytes = std::size_t{64} * 1024;  // a multiple of every page size in use

constexpr std::size_t kSignalSetBytes = 8;

class GuardedStack {
 public:
  GuardedStack()
      : base_(mmap(nullptr, kGuardBytes + kStackBytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {
    if (valid() && mprotect(bottom(), kStackBytes, PROT_READ | PROT_WRITE) != 0) {
      Unmap();
    }
  }

  GuardedStack(const GuardedStack&) = delete;
  GuardedStack& operator=(const GuardedStack&) = delete;

  ~GuardedStack() { Unmap(); }

  bool valid() const { return base_ != MAP_FAILED; }

  char* bottom() const { return static_cast<char*>(base_) + kGuardBytes; }

  char* top() const { return bottom() + kStackBytes; }

 private:
  void Unmap() {
    if (valid()) {
      const int saved = errno;
      munmap(base_, kGuardBytes + kStackBytes);
      base_ = MAP_FAILED;
      errno = saved;
    }
  }

  void* base_;
};

// Every signal, also the two that the C library keeps for itself: its handlers would find a wrong
// thread in the child.
class BlockedSignals {
 public:
  BlockedSignals() {
    const std::uint64_t all = ~std::uint64_t{0};
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &saved_, kSignalSetBytes);
  }

  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  ~BlockedSignals() {
    const int saved_errno = errno;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved_, nullptr, kSignalSetBytes);
    errno = saved_errno;
  }

 private:
  std::uint64_t saved_ = 0;
};

struct CloneAnswer {
  long pid = -1;  // or -errno
  int pidfd = -1;
};

// A child born in its cgroup is spared the join by writing, for which an idle machine waits a whole
// grace period (10 ms and more). Only clone3 can do that, and only assembly can give clone3 a
// stack. -ENOSYS also where a system call filter forbids it, as many containers do.
#if defined(__x86_64__)
CloneAnswer Clone3(const CloneRequest& request, const GuardedStack& stack) {
  CloneAnswer answer;
  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | request.namespaces;
  args.pidfd = reinterpret_cast<__u64>(&answer.pidfd);
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<__u64>(stack.bottom());
  args.stack_size = kStackBytes;
  if (request.cgroup.valid()) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<__u64>(request.cgroup.get());
  }
  __asm__ volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "movq %[argument], %%rdi\n\t"  // the child, on its own stack
      "movq %[body], %%rax\n\t"
      "xorl %%ebp, %%ebp\n\t"  // end of the chain of frames
      "callq *%%rax\n\t"
      "hlt\n"
      "1:"
      : "=a"(answer.pid)
      : "a"(SYS_clone3), "D"(&args),
        "S"(sizeof args), [body] "r"(request.body), [argument] "r"(request.argument)
      : "rcx", "r11", "memory");
  return answer;
}
#else
CloneAnswer Clone3(const CloneRequest& /*request*/, const GuardedStack& /*stack*/) {
  return {-ENOSYS, -1};
}
#endif

CloneAnswer ClonePlain(const CloneRequest& request, const GuardedStack& stack) {
  CloneAnswer answer;
  const auto flags =
      static_cast<int>(CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD | request.namespaces);
  answer.pid = clone(request.body, stack.top(), flags, request.argument, &answer.pidfd);
  if (answer.pid < 0) {
    answer.pid = -errno;
  }
  return answer;
}

}  // namespace

Result<ClonedChild> CloneChild(const CloneRequest& request) {
  const GuardedStack stack;
  if (!stack.valid()) {
    return Fail(ErrnoError(ErrorCode::kResourceExhausted, "mmap", "", errno));
  }
  CloneAnswer answer;
  {
    const BlockedSignals blocked;
    answer = Clone3(request, stack);
    if (answer.pid == -ENOSYS && !request.cgroup.valid()) {
      answer = ClonePlain(request, stack);
    }
  }
  if (answer.pid < 0) {
    const int sys_errno = static_cast<int>(-answer.pid);
    return Fail(ErrnoError(ErrorCode::kLaunch, "clone", "", sys_errno));
  }
  return ClonedChild{static_cast<pid_t>(answer.pid), UniqueFd(answer.pidfd)};
}

}  // namespace bulkhead::process
