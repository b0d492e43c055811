// Pid 1 of a worker's pid namespace. It starts the worker, reaps whatever is orphaned, reports how
// the worker ended, and ends itself: with it the kernel ends everything that is left in the
// namespace. A worker is never pid 1 itself: there the kernel ignores most signals, also those by
// which a program ends itself.
//
// Argument: the program to start. It gets that path as its only argument, an empty environment,
// and the descriptors below kInitReportDescriptor.
//
// Freestanding: no library, no heap, a few pages of memory, and started in a fraction of a
// millisecond.
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/time.h>

#include <cstddef>
#include <cstdint>

#include "process/init_protocol.h"
#include "process/raw_call.h"

#if !defined(__x86_64__)
#error "system calls and the entry point are for x86-64"
#endif

namespace {

using bulkhead::process::Call;
using bulkhead::process::InitReport;
using bulkhead::process::kInitProgramDescriptor;
using bulkhead::process::kInitReportDescriptor;

constexpr int kExitFine = 0;
constexpr int kExitNoParent = 1;
constexpr int kErrnoInterrupted = 4;  // EINTR
constexpr long kBadDescriptor = -9;   // EBADF
constexpr std::size_t kWorkerStackBytes = 16384;

[[noreturn]] void Exit(int status) {
  for (;;) {
    Call(__NR_exit_group, status);
  }
}

// What must hold before anything of the worker may: init's end is the worker's.
void Check(long answer) {
  if (answer < 0) {
    Exit(kExitNoParent);
  }
}

// ---- The worker, until it executes. Shares init's memory; init waits meanwhile. ----

struct WorkerStart {
  const char* program = nullptr;
  long error = 0;  // of a failed execution, -errno
};

alignas(16) char worker_stack[kWorkerStackBytes];
WorkerStart start;

[[noreturn]] void RunWorker() {
  const char* const arguments[] = {start.program, nullptr};
  const char* const environment[] = {nullptr};
  long error = Call(__NR_setsid);
  if (error >= 0) {
    error = Call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
  }
  if (error >= 0) {
    error = Call(__NR_execveat, kInitProgramDescriptor, "", arguments, environment, AT_EMPTY_PATH);
  }
  if (error == kBadDescriptor) {  // the program is not pinned
    error = Call(__NR_execve, start.program, arguments, environment);
  }
  start.error = error;
  Exit(kExitNoParent);
}

struct Worker {
  long pid = -1;
  int pidfd = -1;
};

Worker StartWorker() {
  Worker worker;
  // Not clone3: many containers forbid it.
  constexpr long kFlags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
  __asm__ volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"  // the child, on its own stack
      "callq *%[body]\n\t"
      "hlt\n"
      "1:"
      : "=a"(worker.pid)
      : "a"(__NR_clone), "D"(kFlags), "S"(worker_stack + kWorkerStackBytes),
        "d"(&worker.pidfd), [body] "r"(&RunWorker)
      : "rcx", "r11", "memory");
  return worker;
}

// ---- Reports ----

struct Vector {
  const void* base;
  std::size_t bytes;
};

// The kernel's struct user_msghdr.
struct Message {
  const void* name = nullptr;
  int name_bytes = 0;
  const Vector* parts = nullptr;
  std::size_t part_count = 0;
  const void* control = nullptr;
  std::size_t control_bytes = 0;
  unsigned flags = 0;
};

struct ControlHeader {
  std::size_t bytes;
  int level;
  int type;
};

// From <sys/socket.h>, which is a library's.
constexpr int kSolSocket = 1;
constexpr int kScmRights = 1;
constexpr int kScmCredentials = 2;

// Who the worker is, in terms of the receiver: the kernel translates both.
struct WorkerIdentity {
  ControlHeader credentials_header{sizeof(ControlHeader) + 12, kSolSocket, kScmCredentials};
  std::int32_t pid = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::int32_t padding = 0;
  ControlHeader rights_header{sizeof(ControlHeader) + 4, kSolSocket, kScmRights};
  std::int32_t pidfd = 0;
  std::int32_t padding_too = 0;
};

void Send(const InitReport& report, const WorkerIdentity* identity) {
  const Vector part{&report, sizeof report};
  Message message;
  message.parts = &part;
  message.part_count = 1;
  if (identity != nullptr) {
    message.control = identity;
    message.control_bytes = sizeof *identity;
  }
  constexpr long kNoSignal = 0x4000;  // MSG_NOSIGNAL
  long sent = 0;
  do {
    sent = Call(__NR_sendmsg, kInitReportDescriptor, &message, kNoSignal);
  } while (sent == -kErrnoInterrupted);
  if (sent < 0) {
    Exit(kExitNoParent);  // and the worker with us
  }
}

void ReportStart(const Worker& worker) {
  InitReport report;
  if (worker.pid < 0 || start.error != 0) {
    report.kind = InitReport::Kind::kExecFailed;
    report.error = static_cast<std::int32_t>(worker.pid < 0 ? -worker.pid : -start.error);
    Send(report, nullptr);
    Exit(kExitFine);
  }
  WorkerIdentity identity;
  identity.pid = static_cast<std::int32_t>(worker.pid);
  identity.user = static_cast<std::uint32_t>(Call(__NR_geteuid));
  identity.group = static_cast<std::uint32_t>(Call(__NR_getegid));
  identity.pidfd = worker.pidfd;
  Send(report, &identity);
}

// Until the worker has ended; orphans are reaped on the way.
InitReport WaitForWorker(long worker) {
  // The kernel's struct rusage.
  struct Usage {
    __kernel_old_timeval user;
    __kernel_old_timeval system;
    long rss_kib_peak;
    long others[13];
  };

  InitReport report;
  report.kind = InitReport::Kind::kExited;
  for (;;) {
    Usage usage{};
    const long ended = Call(__NR_wait4, -1, &report.wait_status, 0, &usage);
    if (ended == worker) {
      constexpr std::uint64_t kMicrosecondsPerSecond = 1'000'000;
      constexpr std::uint64_t kBytesPerKib = 1024;
      report.cpu_us = static_cast<std::uint64_t>(usage.user.tv_sec + usage.system.tv_sec) *
                          kMicrosecondsPerSecond +
                      static_cast<std::uint64_t>(usage.user.tv_usec + usage.system.tv_usec);
      report.rss_bytes_peak = static_cast<std::uint64_t>(usage.rss_kib_peak) * kBytesPerKib;
      return report;
    }
    if (ended < 0 && ended != -kErrnoInterrupted) {
      Exit(kExitNoParent);  // nobody to wait for: cannot be
    }
  }
}

// From here on it waits and writes one message: no right is needed for that.
void GiveUpRights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  Check(Call(__NR_capset, &header, none));
  Check(Call(__NR_prctl, PR_SET_DUMPABLE, 0));
}

}  // namespace

extern "C" [[noreturn]] void Main(const long* stack) {
  const char* const* const arguments = reinterpret_cast<const char* const*>(stack + 1);
  if (stack[0] < 2) {
    Exit(kExitNoParent);
  }
  start.program = arguments[1];
  Call(__NR_prctl, PR_SET_NAME, "bulkhead-init");
  Check(Call(__NR_fcntl, kInitReportDescriptor, F_SETFD, FD_CLOEXEC));
  if (const long kept = Call(__NR_fcntl, kInitProgramDescriptor, F_SETFD, FD_CLOEXEC);
      kept != kBadDescriptor) {
    Check(kept);
  }
  const Worker worker = StartWorker();
  ReportStart(worker);
  // The worker's channel ends with the worker, not with us.
  for (int fd = 0; fd <= kInitProgramDescriptor; ++fd) {
    if (fd != kInitReportDescriptor) {
      Call(__NR_close, fd);
    }
  }
  GiveUpRights();
  Send(WaitForWorker(worker.pid), nullptr);
  Exit(kExitFine);
}

// The kernel starts a program with its arguments on the stack.
__asm__(
    ".globl _start\n"
    "_start:\n\t"
    "xorl %ebp, %ebp\n\t"
    "movq %rsp, %rdi\n\t"
    "andq $-16, %rsp\n\t"
    "callq Main\n\t"
    "hlt\n");
