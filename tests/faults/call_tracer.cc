#include "faults/call_tracer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/unique_fd.h"
#include "faults/window.h"

namespace bulkhead::test {
namespace {

// Far above what a run takes on a loaded machine; only a hang lasts longer.
constexpr std::chrono::seconds kHangBound{30};
constexpr int kSyscallStop = SIGTRAP | 0x80;
// What a call is replaced by that is not to happen: allowed by every system call filter of ours,
// which sees the replacement.
constexpr unsigned long kHarmlessCall = SYS_getpid;

struct Process {
  std::string role;
  int threads = 0;
};

struct Task {
  std::shared_ptr<Process> process;
  std::string role;
  std::map<long, int> counts;
  bool failing = false;  // the fault is injected, and its answer not yet given
};

UniqueFd OutputFile(const char* name) {
  UniqueFd file(memfd_create(name, MFD_CLOEXEC));
  BH_CHECK(file.valid());
  return file;
}

std::string ContentOf(BorrowedFd file) {
  std::string content(static_cast<std::size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
  BH_CHECK(pread(file.get(), content.data(), content.size(), 0) ==
           static_cast<ssize_t>(content.size()));
  return content;
}

bool OnEvent(pid_t tid, long call, std::uint64_t descriptor) {
  if (call != SYS_read && call != SYS_write) {
    return false;
  }
  std::error_code gone;
  const auto target = std::filesystem::read_symlink(
      "/proc/" + std::to_string(tid) + "/fd/" + std::to_string(descriptor), gone);
  return target == "anon_inode:[eventfd]";
}

std::string ProgramOf(pid_t pid) {
  std::error_code gone;
  const auto target = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", gone);
  std::string name = target.filename().string();
  name = name.substr(0, name.find(' '));  // " (deleted)"
  return name.starts_with("memfd:") ? name.substr(6) : name;
}

class Tracer {
 public:
  explicit Tracer(const std::optional<CallFault>& fault)
      : fault_(fault), out_(OutputFile("out")), err_(OutputFile("err")) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    BH_CHECK(sigprocmask(SIG_BLOCK, &set, &signals_before_) == 0);
  }

  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  ~Tracer() { sigprocmask(SIG_SETMASK, &signals_before_, nullptr); }

  TracedRun Run(const std::vector<std::string>& words);

 private:
  void Start(const std::vector<std::string>& words);
  bool Follow(std::chrono::steady_clock::time_point bound);
  void FeedStatus(pid_t tid, int status);
  void FeedStop(pid_t tid, int status);
  void FeedEvent(pid_t tid, int event);
  void FeedCall(pid_t tid, Task& task);
  void EnterCall(pid_t tid, Task& task, long call, const std::uint64_t* arguments);
  void Adopt(pid_t child, const std::shared_ptr<Process>& process);
  std::string Unique(const std::string& role);
  void TakeEnded();
  void Forget(pid_t tid, int status);
  void EndAll();
  static void Resume(pid_t tid, int signal = 0);

  const std::optional<CallFault>& fault_;
  UniqueFd out_;
  UniqueFd err_;
  sigset_t signals_before_{};
  pid_t main_ = -1;
  std::map<pid_t, Task> tasks_;
  std::set<pid_t> stopped_early_;            // before the event that tells whose they are
  std::set<pid_t> expected_;                 // told of, their first stop is to come
  std::deque<std::pair<pid_t, int>> turns_;  // statuses already taken
  std::map<std::string, int> names_;
  bool open_ = false;
  TracedRun run_;
};

TracedRun Tracer::Run(const std::vector<std::string>& words) {
  Start(words);
  run_.hung = !Follow(std::chrono::steady_clock::now() + kHangBound);
  EndAll();
  run_.out = ContentOf(out_.borrow());
  run_.err = ContentOf(err_.borrow());
  return std::move(run_);
}

void Tracer::Start(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  main_ = fork();
  BH_CHECK(main_ >= 0);
  if (main_ == 0) {
    sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
    if (dup2(out_.get(), STDOUT_FILENO) < 0 || dup2(err_.get(), STDERR_FILENO) < 0 ||
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0 || raise(SIGSTOP) != 0) {
      _exit(126);
    }
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  BH_CHECK(waitpid(main_, &status, __WALL) == main_ && WIFSTOPPED(status));
  BH_CHECK(ptrace(PTRACE_SETOPTIONS, main_, nullptr,
                  PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                      PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) == 0);
  auto process = std::make_shared<Process>();
  process->role = Unique("start");
  Adopt(main_, process);
  expected_.erase(main_);
  Resume(main_);
}

// Until the program has ended; false if it does not.
bool Tracer::Follow(std::chrono::steady_clock::time_point bound) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  while (!run_.exit) {
    if (!turns_.empty()) {
      const auto [tid, status] = turns_.front();
      turns_.pop_front();
      FeedStatus(tid, status);
      continue;
    }
    int status = 0;
    if (const pid_t tid = waitpid(-1, &status, __WALL | WNOHANG); tid > 0) {
      FeedStatus(tid, status);
      continue;
    }
    const auto left = bound - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) {
      return false;
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec wait{static_cast<time_t>(seconds.count()), 999'999'999};
    sigtimedwait(&child, nullptr, &wait);
  }
  return true;
}

void Tracer::FeedStatus(pid_t tid, int status) {
  if (!WIFSTOPPED(status)) {
    return Forget(tid, status);
  }
  if (!tasks_.contains(tid)) {
    stopped_early_.insert(tid);
    return;
  }
  FeedStop(tid, status);
}

void Tracer::FeedStop(pid_t tid, int status) {
  const int signal = WSTOPSIG(status);
  if (signal == kSyscallStop) {
    return FeedCall(tid, tasks_.at(tid));
  }
  if (status >> 16 != 0) {
    return FeedEvent(tid, status >> 16);
  }
  if (signal == SIGSTOP && expected_.erase(tid) != 0) {
    return Resume(tid);
  }
  Resume(tid, signal);
}

void Tracer::FeedEvent(pid_t tid, int event) {
  Task& task = tasks_.at(tid);
  if (event == PTRACE_EVENT_EXEC) {
    task.process = std::make_shared<Process>();
    task.process->role = Unique(ProgramOf(tid));
    task.process->threads = 1;
    task.role = task.process->role;
    task.counts.clear();
    return Resume(tid);
  }
  unsigned long child = 0;
  BH_CHECK(ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &child) == 0);
  std::shared_ptr<Process> process = task.process;
  if (event != PTRACE_EVENT_CLONE) {  // clone without an exit signal: a thread
    process = std::make_shared<Process>();
    process->role = Unique(task.process->role + "-child");
  }
  Adopt(static_cast<pid_t>(child), process);
  Resume(tid);
}

void Tracer::Adopt(pid_t child, const std::shared_ptr<Process>& process) {
  Task task;
  task.process = process;
  ++process->threads;
  task.role = process->role;
  if (process->threads > 1) {
    task.role += "." + std::to_string(process->threads);
  }
  tasks_[child] = std::move(task);
  if (stopped_early_.erase(child) != 0) {
    Resume(child);
  } else {
    expected_.insert(child);
  }
}

std::string Tracer::Unique(const std::string& role) {
  const int count = ++names_[role];
  return count == 1 ? role : role + "#" + std::to_string(count);
}

void Tracer::FeedCall(pid_t tid, Task& task) {
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) <= 0) {
    return;  // killed meanwhile
  }
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
    EnterCall(tid, task, static_cast<long>(info.entry.nr), info.entry.args);
  } else if (task.failing) {
    task.failing = false;
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, tid, nullptr, &registers) == 0) {
      registers.rax = static_cast<unsigned long long>(-fault_->sys_errno);
      ptrace(PTRACE_SETREGS, tid, nullptr, &registers);
    }
  }
  Resume(tid);
}

void Tracer::EnterCall(pid_t tid, Task& task, long call, const std::uint64_t* arguments) {
  if (call == kWindowCall && static_cast<long>(arguments[0]) == kWindowOption) {
    open_ = static_cast<long>(arguments[1]) == kWindowOpens;
    return;
  }
  if (call == SYS_waitid || call == SYS_wait4) {
    TakeEnded();
  }
  if (!open_) {
    return;
  }
  const long kind = OnEvent(tid, call, arguments[0]) ? call + kOnEvent : call;
  const CallSite site{task.role, kind, ++task.counts[kind]};
  run_.sites.push_back(site);
  if (run_.hit || !fault_ || fault_->site != site) {
    return;
  }
  run_.hit = true;
  task.failing = true;
  user_regs_struct registers{};
  if (!fault_->takes_effect && ptrace(PTRACE_GETREGS, tid, nullptr, &registers) == 0) {
    registers.orig_rax = kHarmlessCall;
    ptrace(PTRACE_SETREGS, tid, nullptr, &registers);
  }
}

// A traced process that has ended is its parent's only after the tracer has taken notice. Whoever
// is about to look must not see less than without a tracer. Stops cannot be left out of the answers
// and keep their turn.
void Tracer::TakeEnded() {
  int status = 0;
  for (pid_t tid = 0; (tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0;) {
    if (WIFSTOPPED(status)) {
      turns_.emplace_back(tid, status);
    } else {
      Forget(tid, status);
    }
  }
}

void Tracer::Forget(pid_t tid, int status) {
  tasks_.erase(tid);
  stopped_early_.erase(tid);
  expected_.erase(tid);
  if (tid == main_) {
    run_.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
}

void Tracer::EndAll() {
  if (!run_.hung) {
    TakeEnded();
  }
  std::set<std::string> left;
  for (const auto& [tid, task] : tasks_) {
    left.insert(task.role);
    kill(tid, SIGKILL);
  }
  for (const pid_t tid : stopped_early_) {
    kill(tid, SIGKILL);
  }
  run_.left.assign(left.begin(), left.end());
  while (waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) {
  }
}

void Tracer::Resume(pid_t tid, int signal) {
  // Fails for a process that was killed meanwhile.
  ptrace(PTRACE_SYSCALL, tid, nullptr, signal);
}

}  // namespace

TracedRun TraceCalls(const std::vector<std::string>& words, const std::optional<CallFault>& fault) {
  return Tracer(fault).Run(words);
}

}  // namespace bulkhead::test
