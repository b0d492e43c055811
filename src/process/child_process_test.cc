#include "process/child_process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/proc_stat.h"
#include "base/text_file.h"
#include "process/launcher.h"
#include "process/pidfd.h"
#include "process/process_support_test.h"

namespace bulkhead::process {
namespace {

constexpr ExitStatus kKilled{ExitStatus::How::kSignalled, SIGKILL};

Deadline Passed() {
  return Deadline::At(MonotonicTime());
}

bool KernelAtLeast(int major, int minor) {
  utsname name{};
  int has_major = 0;
  int has_minor = 0;
  return uname(&name) == 0 && sscanf(name.release, "%d.%d", &has_major, &has_minor) == 2 &&
         (has_major > major || (has_major == major && has_minor >= minor));
}

bool HasCgroup(Launcher& launcher) {
  const auto walls = launcher.Walls(false);
  return walls && walls->mechanisms.size() > 1;
}

std::unique_ptr<WorkerProcess> StartScript(Launcher& launcher, const TestDirectory& dir,
                                           std::string_view body) {
  SpawnSpec spec;
  spec.program = dir.Script("worker", body);
  Result<std::unique_ptr<WorkerProcess>> process = launcher.Spawn(spec);
  EXPECT_TRUE(process) << process.error().message;
  return process ? *std::move(process) : nullptr;
}

ExitStatus WaitAndObserve(WorkerProcess& process) {
  EXPECT_TRUE(WaitExited(process.pidfd(), Soon()).value_or(false));
  const auto status = process.Observe();
  EXPECT_TRUE(status && *status) << "no exit seen";
  return status && *status ? **status : ExitStatus{};
}

void ExpectAbsent(const ProcessIdentity& identity) {
  const auto stat = ReadProcStat(identity.pid);
  EXPECT_TRUE(!stat || stat->identity() != identity) << "still there, in state " << stat->state;
}

TEST(ChildProcess, ExitCodesAndSignals) {
  const auto launcher = MakeLauncher();
  const TestDirectory dir;

  struct Row {
    const char* body;
    ExitStatus expected;
  };

  for (const Row& row : {Row{"exit 0", {ExitStatus::How::kExited, 0}},
                         Row{"exit 255", {ExitStatus::How::kExited, 255}},
                         Row{"kill -TERM $$", {ExitStatus::How::kSignalled, SIGTERM}},
                         Row{"kill -SEGV $$", {ExitStatus::How::kSignalled, SIGSEGV}},
                         Row{"kill -KILL $$", {ExitStatus::How::kSignalled, SIGKILL}}}) {
    const auto process = StartScript(*launcher, dir, row.body);
    ASSERT_NE(process, nullptr);
    EXPECT_EQ(WaitAndObserve(*process), row.expected) << row.body;
    EXPECT_EQ(**process->KillAndReap(Soon()), row.expected) << row.body;
  }
}

TEST(ChildProcess, ObserveNeitherReapsNorSignals) {
  const auto launcher = MakeLauncher();
  const auto worker = EchoWorker::Start(*launcher);
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(*worker->process().Observe(), std::nullopt);
  worker->CloseInput();
  EXPECT_TRUE(WaitAndObserve(worker->process()).clean());
  EXPECT_TRUE(WaitAndObserve(worker->process()).clean());
  EXPECT_EQ(ReadProcStat(worker->pid())->state, 'Z');
}

TEST(OneShot, C1DroppingTheOwnerContainsIt) {
  const auto launcher = MakeLauncher();
  auto worker = EchoWorker::Start(*launcher);
  ASSERT_NE(worker, nullptr);
  const ProcessIdentity identity = worker->process().identity();
  worker.reset();
  ExpectAbsent(identity);
  EXPECT_FALSE(HasZombie());
}

TEST(OneShot, C2DroppingOnlyTheChannelEndsDoesNotContain) {
  const auto launcher = MakeLauncher();
  const TestDirectory dir;
  ReportingWorker worker =
      StartReporting(*launcher, dir.Script("worker", "echo up >&3; sleep 1000"));
  ASSERT_NE(worker.process, nullptr);
  EXPECT_EQ(ReadLine(worker.report.borrow()), "up");
  worker.report.Reset();
  EXPECT_TRUE(Alive(worker.process->identity()));
  EXPECT_EQ(*worker.process->Observe(), std::nullopt);
}

TEST(OneShot, C3SuccessIsNotRepeated) {
  const auto launcher = MakeLauncher();
  const auto worker = EchoWorker::Start(*launcher);
  ASSERT_NE(worker, nullptr);
  const ProcessIdentity identity = worker->process().identity();
  EXPECT_EQ(**worker->process().KillAndReap(Soon()), kKilled);
  ExpectAbsent(identity);
  EXPECT_EQ(**worker->process().KillAndReap(Passed()), kKilled);
  EXPECT_EQ(**worker->process().Observe(), kKilled);
  EXPECT_TRUE(worker->process().KillTree());
}

// The frozen of version 1 do not die, however often they are killed.
class FreezerV1 {
 public:
  FreezerV1() {
    for (const CgroupLocation& location :
         FindCgroupLocations(ReadTextFile("/proc/self/cgroup").value_or(""),
                             ReadTextFile("/proc/self/mountinfo").value_or(""))) {
      if (location.kind == CgroupKind::kV1Freezer) {
        path_ = location.directory + "/test-freezer-" + std::to_string(getpid());
      }
    }
    std::error_code error;
    usable_ = !path_.empty() && std::filesystem::create_directory(path_, error);
  }

  FreezerV1(const FreezerV1&) = delete;
  FreezerV1& operator=(const FreezerV1&) = delete;

  ~FreezerV1() {
    if (usable_) {
      Write("freezer.state", "THAWED");
      std::error_code error;
      std::filesystem::remove(path_, error);
    }
  }

  bool usable() const { return usable_; }

  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(path_ + "/" + file) << text;
  }

  void WaitFrozen() const {
    while (*ReadTextFile((path_ + "/freezer.state").c_str()) != "FROZEN\n") {
      std::this_thread::yield();
    }
  }

 private:
  std::string path_;
  bool usable_ = false;
};

TEST(OneShot, C4TimedOutForceKeepsTheOwnerForARetry) {
  const FreezerV1 freezer;
  if (!freezer.usable()) {
    GTEST_SKIP() << "missing: a writable version 1 freezer";
  }
  const auto launcher = MakeLauncher();
  const auto worker = EchoWorker::Start(*launcher);
  ASSERT_NE(worker, nullptr);
  freezer.Write("cgroup.procs", std::to_string(worker->pid()));
  freezer.Write("freezer.state", "FROZEN");
  freezer.WaitFrozen();
  for (int i = 0; i < 2; ++i) {
    const auto status = worker->process().KillAndReap(
        Deadline::After(MonotonicClock().Now(), std::chrono::milliseconds(20)));
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(*status, std::nullopt);
    EXPECT_TRUE(Alive(worker->process().identity()));
  }
  freezer.Write("freezer.state", "THAWED");
  EXPECT_EQ(**worker->process().KillAndReap(Soon()), kKilled);
  ExpectAbsent(worker->process().identity());
}

TEST(OneShot, C5ObservedExitIsNotForced) {
  const auto launcher = MakeLauncher();
  const auto worker = EchoWorker::Start(*launcher);
  ASSERT_NE(worker, nullptr);
  worker->CloseInput();
  EXPECT_TRUE(WaitAndObserve(worker->process()).clean());
  EXPECT_TRUE((*worker->process().KillAndReap(Soon()))->clean());
}

TEST(Case, G04AfterTheReapNothingIsLeftOfTheWorker) {
  const auto launcher = MakeLauncher();
  const TestDirectory dir;
  for (int i = 0; i < 50; ++i) {
    ReportingWorker worker = StartReporting(
        *launcher, dir.Script("worker", "trap '' TERM INT HUP; echo up >&3; while :; do :; done"));
    ASSERT_NE(worker.process, nullptr);
    EXPECT_EQ(ReadLine(worker.report.borrow()), "up");
    EXPECT_EQ(**worker.process->KillAndReap(Soon()), kKilled);
    ExpectAbsent(worker.process->identity());
  }
  EXPECT_FALSE(HasZombie());
}

TEST(Bar, R21StoppedWorkerIsKilled) {
  const auto launcher = MakeLauncher();
  const auto worker = EchoWorker::Start(*launcher);
  ASSERT_NE(worker, nullptr);
  ASSERT_TRUE(SignalProcess(worker->process().pidfd(), SIGSTOP));
  while (!ReadProcStat(worker->pid())->stopped()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(*worker->process().Observe(), std::nullopt);
  EXPECT_EQ(**worker->process().KillAndReap(Soon()), kKilled);
}

TEST(ChildProcess, GroupMembersDieWithARunningWorker) {
  const auto launcher = MakeLauncher();
  const TestDirectory dir;
  ReportingWorker worker = StartReporting(
      *launcher, dir.Script("worker", "trap '' TERM; sleep 1000 & echo $! >&3; wait; sleep 1000"));
  ASSERT_NE(worker.process, nullptr);
  const ProcessIdentity member = IdentityFromLine(ReadLine(worker.report.borrow()));
  ASSERT_TRUE(Alive(member));
  EXPECT_EQ(**worker.process->KillAndReap(Soon()), kKilled);
  EXPECT_FALSE(Alive(member));
}

TEST(OneShot, N13GroupMembersDieAfterACleanExit) {
  const auto launcher = MakeLauncher();
  const TestDirectory dir;
  ReportingWorker worker =
      StartReporting(*launcher, dir.Script("worker", "sleep 1000 & echo $! >&3; exit 0"));
  ASSERT_NE(worker.process, nullptr);
  const ProcessIdentity member = IdentityFromLine(ReadLine(worker.report.borrow()));
  EXPECT_TRUE(WaitAndObserve(*worker.process).clean());
  EXPECT_TRUE(Alive(member));
  EXPECT_TRUE((*worker.process->KillAndReap(Soon()))->clean());
  EXPECT_FALSE(Alive(member));
  EXPECT_EQ(ReadToEnd(worker.report.borrow()), "");  // nobody holds the pipe open
}

constexpr std::string_view kEscape =
    "(/usr/bin/setsid /bin/sh -c 'trap \"\" TERM INT HUP; (echo $$ >&3; exec sleep 1000) & "
    "sleep 1000' &)\n";

bool CanEscape() {
  return access("/usr/bin/setsid", X_OK) == 0;
}

TEST(Bar, R3EscapedSessionsDieWithTheCgroup) {
  const auto launcher = MakeLauncher();
  if (!HasCgroup(*launcher) || !CanEscape()) {
    GTEST_SKIP() << "missing: a writable cgroup, or setsid";
  }
  const TestDirectory dir;
  for (const std::string end : {"exit 0", "sleep 1000"}) {
    ReportingWorker worker =
        StartReporting(*launcher, dir.Script("worker", std::string(kEscape) + end));
    ASSERT_NE(worker.process, nullptr);
    const ProcessIdentity escaped = IdentityFromLine(ReadLine(worker.report.borrow()));
    ASSERT_TRUE(Alive(escaped));
    ASSERT_NE(ReadProcStat(escaped.pid)->session, worker.process->identity().pid);
    if (end == "exit 0") {
      EXPECT_TRUE(WaitAndObserve(*worker.process).clean());
    }
    ASSERT_TRUE(worker.process->KillAndReap(Soon())->has_value());
    EXPECT_FALSE(Alive(escaped));
    EXPECT_EQ(ReadToEnd(worker.report.borrow()), "");
  }
}

TEST(Bar, R3ForkingWhileBeingKilled) {
  const auto launcher = MakeLauncher();
  const TestDirectory dir;
  for (int i = 0; i < 20; ++i) {
    ReportingWorker worker = StartReporting(
        *launcher, dir.Script("worker", "echo up >&3; while :; do (exec sleep 1000) & done"));
    ASSERT_NE(worker.process, nullptr);
    EXPECT_EQ(ReadLine(worker.report.borrow()), "up");
    const auto status = worker.process->KillAndReap(Soon());
    ASSERT_TRUE(status && *status);
    EXPECT_EQ(ReadToEnd(worker.report.borrow()), "");
  }
}

TEST(ChildProcess, NoCgroupIsLeft) {
  const std::set<std::string> before = LeafCgroups();
  const TestDirectory dir;
  auto launcher = MakeLauncher();
  auto first = EchoWorker::Start(*launcher);
  auto second = EchoWorker::Start(*launcher);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  if (HasCgroup(*launcher)) {
    EXPECT_NE(LeafCgroups(), before);
  }
  first->CloseInput();
  EXPECT_TRUE(WaitAndObserve(first->process()).clean());
  first.reset();
  launcher.reset();
  second.reset();  // outlives the launcher
  for (const std::string& leaf : LeafCgroups()) {
    const std::string mine = "/bulkhead-" + std::to_string(getpid()) + "-";
    EXPECT_EQ(leaf.find(mine), std::string::npos) << leaf;
  }
}

TEST(ChildProcess, DataLimitFollowsUse) {
  const auto launcher = MakeLauncher();
  const auto worker = EchoWorker::Start(*launcher);
  ASSERT_NE(worker, nullptr);
  constexpr std::uint64_t kMore = std::uint64_t{64} << 20;
  const std::uint64_t use = ReadMemoryUse(worker->pid())->data_bytes;
  ASSERT_TRUE(worker->process().LimitGrowth({.data_bytes = kMore}));
  rlimit limit{};
  ASSERT_EQ(prlimit(worker->pid(), RLIMIT_DATA, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, use + kMore);
  EXPECT_EQ(limit.rlim_max, use + kMore);
  // Never up again.
  ASSERT_TRUE(worker->process().LimitGrowth({.data_bytes = 2 * kMore}));
  ASSERT_EQ(prlimit(worker->pid(), RLIMIT_DATA, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_max, use + kMore);
  ASSERT_TRUE(worker->process().KillAndReap(Soon()));
  EXPECT_TRUE(worker->process().LimitGrowth({.data_bytes = kMore}));
}

TEST(ChildProcess, ResourceUse) {
  const auto launcher = MakeLauncher();
  const auto worker = EchoWorker::Start(*launcher);
  ASSERT_NE(worker, nullptr);
  const std::uint64_t peak = ReadMemoryUse(worker->pid())->rss_bytes_peak;
  EXPECT_EQ(worker->process().resource_use().rss_bytes_peak, 0U);
  worker->process().SampleMemory();
  EXPECT_EQ(worker->process().resource_use().rss_bytes_peak, peak);
  worker->CloseInput();
  EXPECT_TRUE(WaitAndObserve(worker->process()).clean());
  ASSERT_TRUE(worker->process().KillAndReap(Soon()));
  EXPECT_GT(worker->process().resource_use().cpu.count(), 0);
  // What this process uses itself, far more under a sanitizer, is not taken for the worker's.
  EXPECT_LT(worker->process().resource_use().rss_bytes_peak, 4 * peak);
}

// A host that lets the kernel reap its children.
int StartUnderAutoReap(int flags, bool ignore) {
  struct sigaction action{};
  action.sa_handler = ignore ? SIG_IGN : SIG_DFL;
  action.sa_flags = flags;
  BH_HOST_EXPECT(sigaction(SIGCHLD, &action, nullptr) == 0);
  const auto launcher = MakeLauncher();
  const TestDirectory dir;
  SpawnSpec spec;
  spec.program = dir.Script("worker", "exit 7");
  auto process = launcher->Spawn(spec);
  BH_HOST_EXPECT(process.has_value());
  BH_HOST_EXPECT(WaitExited((*process)->pidfd(), Soon()).value_or(false));
  const auto status = (*process)->Observe();
  BH_HOST_EXPECT(status.has_value() && status->has_value());
  const ExitStatus expected = KernelAtLeast(6, 15) ? ExitStatus{ExitStatus::How::kExited, 7}
                                                   : ExitStatus{ExitStatus::How::kUnknown, 0};
  BH_HOST_EXPECT(**status == expected);
  const auto reaped = (*process)->KillAndReap(Soon());
  BH_HOST_EXPECT(reaped.has_value() && **reaped == expected);

  const auto worker = EchoWorker::Start(*launcher);
  BH_HOST_EXPECT(worker != nullptr);
  BH_HOST_EXPECT(*worker->process().Observe() == std::nullopt);
  const auto killed = worker->process().KillAndReap(Soon());
  BH_HOST_EXPECT(killed.has_value() && killed->has_value());
  BH_HOST_EXPECT(!KernelAtLeast(6, 15) || **killed == kKilled);
  return 0;
}

TEST(Bar, R20HostIgnoresSigchld) {
  TestHost host([] { return StartUnderAutoReap(0, true); });
  EXPECT_EQ(host.Wait(), 0);
}

TEST(Bar, R20HostSetsNoChildWait) {
  TestHost host([] { return StartUnderAutoReap(SA_NOCLDWAIT, false); });
  EXPECT_EQ(host.Wait(), 0);
}

TEST(Bar, R20ForeignWaitTakesTheStatus) {
  TestHost host([] {
    const auto launcher = MakeLauncher();
    SpawnSpec spec;
    spec.program = "/bin/false";
    auto process = launcher->Spawn(spec);
    BH_HOST_EXPECT(process.has_value());
    int raw = 0;
    BH_HOST_EXPECT(waitpid(-1, &raw, 0) == (*process)->identity().pid);
    const auto status = (*process)->KillAndReap(Soon());
    BH_HOST_EXPECT(status.has_value() && status->has_value());
    BH_HOST_EXPECT(**status ==
                   (KernelAtLeast(6, 15) ? ExitStatus{ExitStatus::How::kExited, 1} : ExitStatus{}));
    return 0;
  });
  EXPECT_EQ(host.Wait(), 0);
}

// For hosts in a pid namespace: a /proc that shows it.
bool MountOwnProc() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("proc", "/proc", "proc", 0, nullptr) == 0;
}

// A process of its own group and session under exactly this number.
pid_t StartInnocentAs(pid_t wanted) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::ofstream("/proc/sys/kernel/ns_last_pid") << wanted - 1;
    const pid_t pid = fork();
    if (pid == 0) {
      setsid();
      for (;;) {
        pause();
      }
    }
    if (pid == wanted) {
      return pid;
    }
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return -1;
}

// The worker's number goes to an innocent process as early as the kernel allows: after our own
// reap, or, with `foreign_reap`, while we still believe the worker to be ours.
int KillWithReissuedNumber(bool foreign_reap) {
  if (!MountOwnProc()) {
    return kHostSkips;
  }
  auto launcher = MakeLauncher();
  SpawnSpec spec;
  spec.program = "/bin/true";
  auto process = launcher->Spawn(spec);
  BH_HOST_EXPECT(process.has_value());
  const pid_t number = (*process)->identity().pid;
  BH_HOST_EXPECT(WaitExited((*process)->pidfd(), Soon()).value_or(false));
  if (foreign_reap) {
    BH_HOST_EXPECT(waitpid(number, nullptr, 0) == number);
  } else {
    BH_HOST_EXPECT((*process)->KillAndReap(Soon()).has_value());
  }
  const pid_t innocent = StartInnocentAs(number);
  if (innocent < 0) {
    return kHostSkips;
  }
  BH_HOST_EXPECT((*process)->KillTree().has_value());
  const auto again = (*process)->KillAndReap(Soon());
  BH_HOST_EXPECT(again.has_value() && again->has_value());
  BH_HOST_EXPECT((*process)->LimitGrowth({.data_bytes = 1}).has_value());
  process->reset();
  launcher.reset();
  rlimit limit{};
  BH_HOST_EXPECT(prlimit(innocent, RLIMIT_DATA, nullptr, &limit) == 0);
  BH_HOST_EXPECT(limit.rlim_cur == RLIM_INFINITY);
  BH_HOST_EXPECT(waitpid(innocent, nullptr, WNOHANG) == 0);
  BH_HOST_EXPECT(Alive(*IdentityOf(innocent)));
  return 0;
}

TEST(Case, G39ReissuedNumberIsNeverSignalled) {
  for (const bool foreign_reap : {false, true}) {
    TestHost host([=] { return KillWithReissuedNumber(foreign_reap); }, CLONE_NEWPID);
    const int code = host.started() ? host.Wait() : kHostSkips;
    if (code == kHostSkips) {
      GTEST_SKIP() << "missing: pid namespaces with ns_last_pid";
    }
    EXPECT_EQ(code, 0);
  }
}

TEST(OneShot, N17HostAsPid1OfANamespaceCanStartWorkers) {
  TestHost host(
      [] {
        if (!MountOwnProc()) {
          return kHostSkips;
        }
        BH_HOST_EXPECT(getpid() == 1);
        const auto launcher = MakeLauncher();
        const auto worker = EchoWorker::Start(*launcher);
        BH_HOST_EXPECT(worker != nullptr);
        worker->CloseInput();
        BH_HOST_EXPECT(WaitAndObserve(worker->process()).clean());
        return 0;
      },
      CLONE_NEWPID);
  const int code = host.started() ? host.Wait() : kHostSkips;
  if (code == kHostSkips) {
    GTEST_SKIP() << "missing: permission to make a pid namespace";
  }
  EXPECT_EQ(code, 0);
}

// Starts a worker that ends by no means of its own, says its pid and waits for the end.
int HostOneWorker(const std::string& program, BorrowedFd report) {
  const auto launcher = MakeLauncher();
  SpawnSpec spec;
  spec.program = program;
  const auto worker = launcher->Spawn(spec);
  BH_HOST_EXPECT(worker.has_value());
  const std::string line = std::to_string((*worker)->identity().pid) + "\n";
  BH_HOST_EXPECT(write(report.get(), line.data(), line.size()) ==
                 static_cast<ssize_t>(line.size()));
  for (;;) {
    pause();
  }
}

TEST(OneShot, N17WorkerDiesWithAKilledHost) {
  const TestPipe report = MakePipe();
  const TestDirectory dir;
  const std::string program = dir.Script("worker", "exec sleep 1000");
  TestHost host([&] { return HostOneWorker(program, report.writer.borrow()); });
  const ProcessIdentity worker = IdentityFromLine(ReadLine(report.reader.borrow()));
  ASSERT_TRUE(Alive(worker));
  host.Kill();
  EXPECT_TRUE(GoneSoon(worker));
}

TEST(OneShot, N17WorkerDiesWithAKilledHostUnderASubreaper) {
  const TestPipe report = MakePipe();
  const TestPipe hold = MakePipe();
  const TestDirectory dir;
  const std::string program = dir.Script("worker", "exec sleep 1000");
  TestHost reaper([&] {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    TestHost host([&] { return HostOneWorker(program, report.writer.borrow()); });
    char c = 0;
    BH_HOST_EXPECT(read(hold.reader.get(), &c, 1) == 1);
    host.Kill();
    BH_HOST_EXPECT(host.Wait() == 128 + SIGKILL);
    int status = 0;
    BH_HOST_EXPECT(waitpid(-1, &status, 0) > 0);  // the worker, inherited
    BH_HOST_EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return 0;
  });
  const ProcessIdentity worker = IdentityFromLine(ReadLine(report.reader.borrow()));
  ASSERT_TRUE(Alive(worker));
  EXPECT_EQ(write(hold.writer.get(), "x", 1), 1);
  EXPECT_EQ(reaper.Wait(), 0);
  EXPECT_FALSE(Alive(worker));
}

// Processes that run this script.
std::size_t CountRunning(const std::string& program) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto text = ReadTextFile((entry.path() / "cmdline").c_str());
    count += text && text->find(program) != std::string::npos ? 1U : 0U;
  }
  return count;
}

TEST(Case, G16HostKilledWhileItStartsWorkers) {
  const TestDirectory dir;
  const std::string program = dir.Script("worker", "while :; do sleep 1000; done");
  for (int round = 0; round < 40; ++round) {
    const TestPipe busy = MakePipe();
    TestHost host([&] {
      const auto launcher = MakeLauncher();
      std::vector<std::unique_ptr<WorkerProcess>> workers;
      SpawnSpec spec;
      spec.program = program;
      for (;;) {
        auto worker = launcher->Spawn(spec);
        BH_HOST_EXPECT(worker.has_value());
        workers.push_back(*std::move(worker));
        BH_HOST_EXPECT(write(busy.writer.get(), "x", 1) == 1);
      }
    });
    // Killed in the midst of another start, a different one in each round.
    char c = 0;
    for (int started = 0; started <= round % 4; ++started) {
      ASSERT_EQ(read(busy.reader.get(), &c, 1), 1);
    }
    host.Kill();
    EXPECT_EQ(host.Wait(), 128 + SIGKILL);
    const Deadline deadline = Soon();
    while (CountRunning(program) != 0) {
      ASSERT_FALSE(deadline.PassedAt(MonotonicClock().Now())) << "a worker outlived its host";
      std::this_thread::yield();
    }
  }
}

TEST(Case, G33WorkerDiesWithTheThreadThatStartedIt) {
  const auto launcher = MakeLauncher();
  std::unique_ptr<EchoWorker> worker;
  std::thread([&] { worker = EchoWorker::Start(*launcher); }).join();
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(WaitAndObserve(worker->process()), kKilled);
}

}  // namespace
}  // namespace bulkhead::process
