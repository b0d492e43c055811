// Workers in namespaces of their own: the same promises as without, and what only these can keep.
#include "process/contained_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "base/proc_stat.h"
#include "base/text_file.h"
#include "process/launcher.h"
#include "process/pidfd.h"
#include "process/process_support_test.h"

namespace bulkhead::process {
namespace {

SpawnSpec Contained(const std::string& program) {
  SpawnSpec spec;
  spec.program = program;
  spec.namespaces = true;
  return spec;
}

// Empty where this machine lets nobody make namespaces.
std::vector<std::string> MechanismsHere() {
  const auto process = MakeLauncher()->Spawn(Contained("/bin/true"));
  if (!process || !(*process)->walls().own_mounts) {
    return {};
  }
  return (*process)->walls().mechanisms;
}

#define BH_NEED_NAMESPACES()                                  \
  if (MechanismsHere().empty()) {                             \
    GTEST_SKIP() << "missing: permission to make namespaces"; \
  }

ExitStatus EndOf(const std::string& program) {
  const auto process = MakeLauncher()->Spawn(Contained(program));
  EXPECT_TRUE(process) << process.error().message;
  return process ? RunToEnd(**process) : ExitStatus{};
}

std::string Namespace(pid_t pid, const char* name) {
  char text[64] = {};
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/" + name;
  const ssize_t length = readlink(path.c_str(), text, sizeof text - 1);
  return {text, length > 0 ? static_cast<std::size_t>(length) : 0};
}

TEST(Contained, EveryNamespaceIsTheWorkersOwn) {
  BH_NEED_NAMESPACES();
  const auto launcher = MakeLauncher();
  SpawnSpec spec;
  spec.namespaces = true;
  const auto worker = EchoWorker::Start(*launcher, std::move(spec));
  for (const char* name : {"pid", "mnt", "net", "ipc", "uts"}) {
    EXPECT_NE(Namespace(worker->pid(), name), Namespace(getpid(), name)) << name;
    EXPECT_NE(Namespace(worker->pid(), name), "") << name;
  }
  const std::vector<std::string> names = worker->process().walls().mechanisms;
  EXPECT_EQ(worker->process().walls().own_user,
            Namespace(worker->pid(), "user") != Namespace(getpid(), "user"));
  EXPECT_NE(std::find(names.begin(), names.end(), "pid-namespace"), names.end());
  // Second in its namespace: the first is init.
  const std::string numbers = StatusField(worker->pid(), "NSpid");
  EXPECT_TRUE(numbers.ends_with("\t2")) << numbers;
}

TEST(Contained, StatusIsTheWorkersOwn) {
  BH_NEED_NAMESPACES();
  const TestDirectory dir;
  using How = ExitStatus::How;
  EXPECT_EQ(EndOf(dir.Script("fine", "exit 0")), (ExitStatus{How::kExited, 0}));
  EXPECT_EQ(EndOf(dir.Script("seven", "exit 7")), (ExitStatus{How::kExited, 7}));
  EXPECT_EQ(EndOf(dir.Script("abort", "kill -ABRT $$")), (ExitStatus{How::kSignalled, SIGABRT}));
  EXPECT_EQ(EndOf(dir.Script("kill", "kill -KILL $$")), (ExitStatus{How::kSignalled, SIGKILL}));
}

TEST(Contained, UseIsReported) {
  BH_NEED_NAMESPACES();
  const TestDirectory dir;
  const auto process = MakeLauncher()->Spawn(
      Contained(dir.Script("busy", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")));
  ASSERT_TRUE(process);
  EXPECT_EQ(RunToEnd(**process), (ExitStatus{ExitStatus::How::kExited, 0}));
  EXPECT_GT((*process)->resource_use().cpu.count(), 0);
  EXPECT_GT((*process)->resource_use().rss_bytes_peak, 100'000U);
}

TEST(Contained, DescriptorsAreTheGivenOnesOnly) {
  BH_NEED_NAMESPACES();
  const auto launcher = MakeLauncher();
  SpawnSpec spec;
  spec.namespaces = true;
  const auto worker = EchoWorker::Start(*launcher, std::move(spec));
  EXPECT_EQ(OpenDescriptors(worker->pid()), (std::set<int>{0, 1, 2}));
  const auto init = ReadProcStat(worker->pid());
  ASSERT_TRUE(init);
  EXPECT_EQ(OpenDescriptors(init->parent), (std::set<int>{kInitReportDescriptor}));
  EXPECT_EQ(StatusField(init->parent, "CapEff"), "0000000000000000");
}

TEST(Case, G30ContainedProgramsThatCannotBeExecuted) {
  BH_NEED_NAMESPACES();
  const TestDirectory dir;
  const auto launcher = MakeLauncher();
  ASSERT_TRUE(launcher->Spawn(Contained("/bin/true")));
  const std::size_t before = OwnDescriptorCount();
  const auto missing = launcher->Spawn(Contained("/no/such/worker"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason, "exec");
  EXPECT_EQ(missing.error().sys_errno, ENOENT);
  const auto plain = launcher->Spawn(Contained(dir.File("plain", "#!/bin/sh\n", 0600)));
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().sys_errno, EACCES);
  EXPECT_NE(plain.error().message.find("it is not executable"), std::string::npos);
  EXPECT_EQ(OwnDescriptorCount(), before);
  EXPECT_FALSE(HasZombie());
}

// Forked twice, in a session of its own, deaf to everything but SIGKILL, and the worker has ended.
TEST(Bar, R3NothingOutlivesThePidNamespace) {
  BH_NEED_NAMESPACES();
  const TestDirectory dir;
  const auto launcher = MakeLauncher();
  for (const bool ends : {true, false}) {
    TestPipe pipe = MakePipe();
    SpawnSpec spec = Contained(
        dir.Script(ends ? "ends" : "stays",
                   std::string("setsid sh -c 'setsid sh -c \"trap : TERM INT HUP; echo up >&3; "
                               "while :; do read x < /proc/self/fd/0; sleep 1000; done\" &' \n") +
                       (ends ? "exec 3>&-; exit 3" : "exec 3>&-; exec sleep 1000")));
    spec.descriptors = {{pipe.writer.borrow(), 3}};
    auto process = launcher->Spawn(spec);
    ASSERT_TRUE(process) << process.error().message;
    pipe.writer.Reset();
    if (!ends) {
      EXPECT_EQ(ReadLine(pipe.reader.borrow()), "up");
    } else {
      EXPECT_EQ(RunToEnd(**process), (ExitStatus{ExitStatus::How::kExited, 3}));
    }
    const auto status = (*process)->KillAndReap(Soon());
    ASSERT_TRUE(status && *status);
    // The last holder of the pipe is gone, whoever it was.
    const std::string rest = ReadToEnd(pipe.reader.borrow());
    EXPECT_TRUE(rest.empty() || rest == "up\n") << rest;
  }
}

TEST(Contained, StoppedWorkersDie) {
  BH_NEED_NAMESPACES();
  const auto launcher = MakeLauncher();
  SpawnSpec spec;
  spec.namespaces = true;
  const auto worker = EchoWorker::Start(*launcher, std::move(spec));
  ASSERT_EQ(kill(worker->pid(), SIGSTOP), 0);
  const auto status = worker->process().KillAndReap(Soon());
  ASSERT_TRUE(status && *status);
  EXPECT_EQ(**status, (ExitStatus{ExitStatus::How::kSignalled, SIGKILL}));
}

// The parent-death signal reaches into the namespace.
TEST(OneShot, N17ContainedWorkersDieWithAKilledHost) {
  BH_NEED_NAMESPACES();
  const TestPipe identities = MakePipe();
  TestHost host([&] {
    const auto launcher = MakeLauncher();
    SpawnSpec spec;
    spec.namespaces = true;
    const auto worker = EchoWorker::Start(*launcher, std::move(spec));
    const auto identity = worker->process().identity();
    dprintf(identities.writer.get(), "%d %llu\n", identity.pid,
            static_cast<unsigned long long>(identity.start_time));
    pause();
    return 0;
  });
  const ProcessIdentity worker = IdentityFromLine(ReadLine(identities.reader.borrow()));
  ASSERT_TRUE(Alive(worker));
  host.Kill();
  host.Wait();
  EXPECT_TRUE(GoneSoon(worker));
}

// SIGCHLD ignored: the kernel reaps init by itself, and the status is not lost.
TEST(Bar, R20StatusIsKnownWhereTheHostHasItsChildrenReaped) {
  BH_NEED_NAMESPACES();
  const TestDirectory dir;
  const std::string program = dir.Script("seven", "exit 7");
  TestHost host([&] {
    signal(SIGCHLD, SIG_IGN);
    const auto process = MakeLauncher()->Spawn(Contained(program));
    BH_HOST_EXPECT(process);
    BH_HOST_EXPECT(WaitExited((*process)->pidfd(), Soon()).value_or(false));
    const auto status = (*process)->KillAndReap(Soon());
    BH_HOST_EXPECT(status && *status && (**status == ExitStatus{ExitStatus::How::kExited, 7}));
    return 0;
  });
  EXPECT_EQ(host.Wait(), 0);
}

// Where making them is forbidden a worker starts without, and says so.
TEST(Contained, WithoutPermissionTheGroupIsWhatIsLeft) {
  TestHost host([&] {
    // An ordinary user in a namespace that allows no further ones.
    if (unshare(CLONE_NEWUSER) != 0 ||
        !WriteTextFile(BorrowedFd(AT_FDCWD), "/proc/sys/user/max_user_namespaces", "0")
             .has_value() ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
      return kHostSkips;
    }
    const auto launcher = MakeLauncher();
    for (int i = 0; i < 2; ++i) {
      const auto process = launcher->Spawn(Contained("/bin/true"));
      BH_HOST_EXPECT(process);
      const OuterWalls walls = (*process)->walls();
      BH_HOST_EXPECT(!walls.own_mounts && walls.mechanisms.front() == "process-group");
    }
    return 0;
  });
  const int code = host.Wait();
  if (code == kHostSkips) {
    GTEST_SKIP() << "missing: user namespaces whose number can be limited";
  }
  EXPECT_EQ(code, 0);
}

TEST(NamespaceLadder, StepsDownUntilSomethingWorked) {
  const auto error = [](int sys_errno) {
    return Error{ErrorCode::kLaunch, "number " + std::to_string(sys_errno), sys_errno, {}};
  };
  NamespaceLadder ladder;
  EXPECT_EQ(ladder.why(), "");
  EXPECT_TRUE(ladder.StepDown(NamespaceMode::kDirect, error(EPERM)));
  EXPECT_EQ(ladder.mode(), NamespaceMode::kOwnUser);
  // A second thread, one step late.
  EXPECT_TRUE(ladder.StepDown(NamespaceMode::kDirect, error(EACCES)));
  EXPECT_EQ(ladder.mode(), NamespaceMode::kOwnUser);
  EXPECT_EQ(ladder.why(), error(EPERM).message);
  EXPECT_FALSE(ladder.StepDown(NamespaceMode::kOwnUser, error(EMFILE)));
  ladder.MarkProven(NamespaceMode::kOwnUser);
  EXPECT_FALSE(ladder.StepDown(NamespaceMode::kOwnUser, error(ENOSPC)));
  EXPECT_EQ(ladder.mode(), NamespaceMode::kOwnUser);
}

}  // namespace
}  // namespace bulkhead::process
