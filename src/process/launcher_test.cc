#include "process/launcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/proc_stat.h"
#include "base/text_file.h"
#include "process/pidfd.h"
#include "process/process_support_test.h"
#include "support/refused_calls.h"

namespace bulkhead::process {
namespace {

Error SpawnError(const SpawnSpec& spec) {
  const auto launcher = MakeLauncher();
  EXPECT_TRUE(launcher->Walls(false));  // opens what it keeps
  const std::size_t before = OwnDescriptorCount();
  Result<std::unique_ptr<WorkerProcess>> process = launcher->Spawn(spec);
  EXPECT_FALSE(process.has_value()) << spec.program << " was started";
  EXPECT_EQ(OwnDescriptorCount(), before);
  EXPECT_FALSE(HasZombie());
  return process ? Error{} : std::move(process).error();
}

Error SpawnError(const std::string& program) {
  SpawnSpec spec;
  spec.program = program;
  return SpawnError(spec);
}

void ExpectLaunchError(const Error& error, std::string_view stage, int sys_errno,
                       std::string_view part) {
  EXPECT_EQ(error.code, ErrorCode::kLaunch) << error.message;
  EXPECT_EQ(error.reason, stage) << error.message;
  EXPECT_EQ(error.sys_errno, sys_errno) << error.message;
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
}

TEST(Case, G30MissingProgram) {
  const Error error = SpawnError("/no/such/worker");
  ExpectLaunchError(error, "exec", ENOENT, "'/no/such/worker'");
  EXPECT_NE(error.message.find("No such file or directory"), std::string::npos);
}

TEST(Case, G30DirectoryAndNotExecutable) {
  const TestDirectory dir;
  ExpectLaunchError(SpawnError(dir.path()), "exec", EACCES, "it is a directory");
  ExpectLaunchError(SpawnError(dir.File("plain", "#!/bin/sh\n", 0600)), "exec", EACCES,
                    "it is not executable (mode 0600)");
}

TEST(Case, G30TextWithoutInterpreterLine) {
  const TestDirectory dir;
  ExpectLaunchError(SpawnError(dir.File("text", "hello\n", 0700)), "exec", ENOEXEC,
                    "Exec format error");
}

TEST(Case, G30ScriptWhoseInterpreterIsMissing) {
  const TestDirectory dir;
  const Error error = SpawnError(dir.File("script", "#! /no/such/interpreter -x\n", 0700));
  ExpectLaunchError(error, "exec", ENOENT, "the file exists");
  EXPECT_NE(error.message.find("'/no/such/interpreter'"), std::string::npos) << error.message;
}

TEST(Case, G30ScriptWhoseInterpreterIsNotExecutable) {
  const TestDirectory dir;
  const std::string inner = dir.File("inner", "x", 0600);
  ExpectLaunchError(SpawnError(dir.File("script", "#!" + inner + "\n", 0700)), "exec", EACCES,
                    "interpreter");
}

TEST(Case, G30NoexecMount) {
  const TestDirectory dir;
  TestHost host([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", dir.path().c_str(), "tmpfs", MS_NOEXEC, nullptr) != 0) {
      return kHostSkips;
    }
    SpawnSpec spec;
    spec.program = dir.Script("worker", "exit 0");
    const auto process = MakeLauncher()->Spawn(spec);
    BH_HOST_EXPECT(!process && process.error().sys_errno == EACCES);
    BH_HOST_EXPECT(process.error().message.find("mounted noexec") != std::string::npos);
    return 0;
  });
  const int code = host.Wait();
  if (code == kHostSkips) {
    GTEST_SKIP() << "missing: permission to mount";
  }
  EXPECT_EQ(code, 0);
}

TEST(Case, G30RelativePathIsRefusedBeforeTheClone) {
  ExpectLaunchError(SpawnError("bin/true"), "prepare", 0, "not an absolute path");
  ExpectLaunchError(SpawnError(""), "prepare", 0, "not an absolute path");
}

TEST(Case, G35OddBytesInPaths) {
  ExpectLaunchError(SpawnError(std::string("/bin/true\0/x", 12)), "prepare", 0, "NUL");
  const TestDirectory dir;
  const auto launcher = MakeLauncher();
  for (const std::string& name : {std::string("a b"), std::string("a\"b'"), std::string("a\nb"),
                                  std::string("\xE2\x98\x83"), std::string("\xFF\xFE")}) {
    SpawnSpec spec;
    spec.program = dir.Script(name, "exit 9");
    auto process = launcher->Spawn(spec);
    ASSERT_TRUE(process) << process.error().message;
    EXPECT_EQ(RunToEnd(**process), (ExitStatus{ExitStatus::How::kExited, 9}));
  }
  ExpectLaunchError(SpawnError(dir.path() + "/" + std::string(256, 'n')), "exec", ENAMETOOLONG,
                    "File name too long");
  ExpectLaunchError(SpawnError("/" + std::string(5000, 'n')), "exec", ENAMETOOLONG, "too long");
  // Messages stay printable.
  EXPECT_NE(SpawnError("/no/\xFF\n").message.find("'/no/\\xff\\x0a'"), std::string::npos);
}

TEST(Launcher, WorkingDirectory) {
  const auto launcher = MakeLauncher();
  const TestDirectory dir;
  SpawnSpec spec;
  spec.working_directory = dir.path();
  const auto worker = EchoWorker::Start(*launcher, spec);
  ASSERT_NE(worker, nullptr);
  const std::string link = "/proc/" + std::to_string(worker->pid()) + "/cwd";
  EXPECT_EQ(std::filesystem::read_symlink(link), std::filesystem::canonical(dir.path()));

  spec.program = "/bin/true";
  spec.working_directory = "/no/such/directory";
  ExpectLaunchError(SpawnError(spec), "working-directory", ENOENT, "'/no/such/directory'");
  spec.working_directory = "relative";
  ExpectLaunchError(SpawnError(spec), "prepare", 0, "not an absolute path");
}

TEST(Launcher, WorkerStartsFromNothing) {
  const auto launcher = MakeLauncher();
  // The launching thread's own state must not show.
  sigset_t blocked;
  sigfillset(&blocked);
  sigset_t saved;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &blocked, &saved), 0);
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction saved_pipe{};
  ASSERT_EQ(sigaction(SIGPIPE, &ignore, &saved_pipe), 0);
  const auto worker = EchoWorker::Start(*launcher);
  ASSERT_EQ(sigaction(SIGPIPE, &saved_pipe, nullptr), 0);
  sigset_t after;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &saved, &after), 0);
  EXPECT_EQ(sigismember(&after, SIGUSR1), 1) << "the launcher changed the caller's mask";
  ASSERT_NE(worker, nullptr);

  const std::string proc = "/proc/" + std::to_string(worker->pid());
  EXPECT_EQ(*ReadTextFile((proc + "/environ").c_str()), "");
  EXPECT_EQ(*ReadTextFile((proc + "/cmdline").c_str()), std::string("/bin/cat\0", 9));
  EXPECT_EQ(StatusField(worker->pid(), "SigBlk"), "0000000000000000");
  EXPECT_EQ(StatusField(worker->pid(), "SigIgn"), "0000000000000000");
  EXPECT_EQ(StatusField(worker->pid(), "Umask"), "0077");
  EXPECT_EQ(StatusField(worker->pid(), "NoNewPrivs"), "1");
  const ProcStat stat = *ReadProcStat(worker->pid());
  EXPECT_EQ(stat.group, worker->pid());
  EXPECT_EQ(stat.session, worker->pid());
  EXPECT_EQ(stat.parent, getpid());
  EXPECT_EQ(stat.identity(), worker->process().identity());
}

TEST(Launcher, LimitsAreAppliedAndNeverRaised) {
  const auto launcher = MakeLauncher();
  SpawnSpec spec;
  spec.limits = {{RLIMIT_NOFILE, 17}, {RLIMIT_FSIZE, 4096}, {RLIMIT_NPROC, RLIM_INFINITY}};
  const auto worker = EchoWorker::Start(*launcher, spec);
  ASSERT_NE(worker, nullptr);
  rlimit limit{};
  ASSERT_EQ(prlimit(worker->pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, 17U);
  EXPECT_EQ(limit.rlim_max, 17U);
  ASSERT_EQ(prlimit(worker->pid(), RLIMIT_FSIZE, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_max, 4096U);
  ASSERT_EQ(prlimit(worker->pid(), RLIMIT_CORE, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_max, 0U);
  rlimit own{};
  ASSERT_EQ(getrlimit(RLIMIT_NPROC, &own), 0);
  ASSERT_EQ(prlimit(worker->pid(), RLIMIT_NPROC, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_max, own.rlim_max);

  spec = {};
  spec.program = "/bin/true";
  spec.limits = {{1000, 1}};
  ExpectLaunchError(SpawnError(spec), "prepare", EINVAL, "prlimit");
}

TEST(Launcher, RaisedPriorityIsNotInherited) {
  TestHost host([] {
    if (setpriority(PRIO_PROCESS, 0, -5) != 0) {
      return kHostSkips;
    }
    const sched_param realtime{.sched_priority = 1};
    sched_setscheduler(0, SCHED_RR, &realtime);
    SpawnSpec spec;
    spec.program = "/bin/cat";
    const TestPipe hold = MakePipe();
    spec.descriptors = {{hold.reader.borrow(), 0}};
    auto process = MakeLauncher()->Spawn(spec);
    BH_HOST_EXPECT(process);
    const auto pid = (*process)->identity().pid;
    BH_HOST_EXPECT(getpriority(PRIO_PROCESS, static_cast<id_t>(pid)) == 0);
    BH_HOST_EXPECT(sched_getscheduler(pid) == SCHED_OTHER);
    return 0;
  });
  const int code = host.Wait();
  if (code == kHostSkips) {
    GTEST_SKIP() << "missing: permission to raise the priority";
  }
  EXPECT_EQ(code, 0);
}

TEST(Launcher, SourcesThatLieWhereTargetsGoAreNotClobbered) {
  // In a host of its own, where the low numbers can be arranged: 3, 4, 5 are the write ends of
  // pipes a, b, c, and the worker gets them rotated.
  TestHost host([] {
    UniqueFd readers[3];
    for (int i = 0; i < 3; ++i) {
      TestPipe pipe = MakePipe();
      readers[i].Reset(fcntl(pipe.reader.get(), F_DUPFD_CLOEXEC, 20));
      BH_HOST_EXPECT(fcntl(pipe.writer.get(), F_DUPFD_CLOEXEC, 30 + i) == 30 + i);
    }
    for (int i = 0; i < 3; ++i) {
      BH_HOST_EXPECT(dup3(30 + i, 3 + i, O_CLOEXEC) == 3 + i);
      close(30 + i);
    }
    const TestDirectory dir;
    SpawnSpec spec;
    spec.program = dir.Script("worker", "echo three >&3; echo four >&4; echo five >&5; echo one");
    spec.descriptors = {
        {BorrowedFd(4), 3}, {BorrowedFd(5), 4}, {BorrowedFd(3), 5}, {BorrowedFd(3), 1}};
    auto process = MakeLauncher()->Spawn(spec);
    BH_HOST_EXPECT(process);
    BH_HOST_EXPECT(ReadLine(readers[1].borrow()) == "three");
    BH_HOST_EXPECT(ReadLine(readers[2].borrow()) == "four");
    BH_HOST_EXPECT(ReadLine(readers[0].borrow()) == "five");
    BH_HOST_EXPECT(ReadLine(readers[0].borrow()) == "one");
    return 0;
  });
  EXPECT_EQ(host.Wait(), 0);
}

TEST(Launcher, BadDescriptorsAreRefused) {
  SpawnSpec spec;
  spec.program = "/bin/true";
  spec.descriptors = {{BorrowedFd(), 3}};
  ExpectLaunchError(SpawnError(spec), "prepare", 0, "an open one for a number from 0 to 15");
  for (const int target : {-1, 16}) {
    spec.descriptors = {{BorrowedFd(0), target}};
    ExpectLaunchError(SpawnError(spec), "prepare", 0, "an open one for a number from 0 to 15");
  }
  spec.descriptors = {{BorrowedFd(0), 5}, {BorrowedFd(1), 5}};
  ExpectLaunchError(SpawnError(spec), "prepare", 0, "5 is given twice");
  spec.descriptors = {{BorrowedFd(987654), 3}};
  ExpectLaunchError(SpawnError(spec), "descriptors", EBADF, "Bad file descriptor");
}

TEST(Case, G27OnlyTheGivenDescriptorsReachAWorker) {
  constexpr int kThreads = 64;
  const auto launcher = MakeLauncher();
  // What a careless host leaks: not close-on-exec, low and high numbers.
  const UniqueFd low(open("/dev/null", O_RDONLY));
  const UniqueFd high(fcntl(low.get(), F_DUPFD, 900));
  ASSERT_TRUE(high.valid());
  std::vector<std::set<int>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const TestPipe extra = MakePipe();
      SpawnSpec spec;
      spec.descriptors = {{extra.reader.borrow(), 3}, {extra.writer.borrow(), 7}};
      const auto worker = EchoWorker::Start(*launcher, spec);
      if (worker != nullptr) {
        seen[static_cast<std::size_t>(i)] = OpenDescriptors(worker->pid());
        worker->CloseInput();  // only this worker ends: nobody else holds its pipe
        EXPECT_EQ(RunToEnd(worker->process()), (ExitStatus{ExitStatus::How::kExited, 0}));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::set<int>& descriptors : seen) {
    EXPECT_EQ(descriptors, (std::set<int>{0, 1, 2, 3, 7}));
  }
}

// A seccomp profile that does not know a system call refuses it like this.
int StartWithLeakedDescriptors() {
  const int leaked = open("/dev/null", O_RDONLY);
  BH_HOST_EXPECT(fcntl(leaked, F_DUPFD, 700) >= 0);
  const auto launcher = MakeLauncher();
  SpawnSpec spec;
  spec.descriptors = {{BorrowedFd(leaked), 9}};
  const auto worker = EchoWorker::Start(*launcher, spec);
  BH_HOST_EXPECT(worker != nullptr);
  BH_HOST_EXPECT(OpenDescriptors(worker->pid()) == (std::set<int>{0, 1, 2, 9}));
  BH_HOST_EXPECT(worker->process().KillAndReap(Soon()).has_value());
  return 0;
}

TEST(Launcher, DescriptorsAreClosedWithoutCloseRange) {
  TestHost host([] {
    return test::RefuseCalls({SYS_close_range}, EPERM) ? StartWithLeakedDescriptors() : kHostSkips;
  });
  const int code = host.Wait();
  if (code == kHostSkips) {
    GTEST_SKIP() << "missing: seccomp";
  }
  EXPECT_EQ(code, 0);
}

TEST(Launcher, WorksWithoutClone3) {
  TestHost host([] {
    return test::RefuseCalls({SYS_clone3}, ENOSYS) ? StartWithLeakedDescriptors() : kHostSkips;
  });
  const int code = host.Wait();
  if (code == kHostSkips) {
    GTEST_SKIP() << "missing: seccomp";
  }
  EXPECT_EQ(code, 0);
}

TEST(Case, G28FewDescriptorsGiveATypedErrorAndNothingIsLost) {
  TestHost host([] {
    const auto launcher = MakeLauncher();
    BH_HOST_EXPECT(launcher->Walls(false).has_value());
    SpawnSpec spec;
    spec.program = "/bin/true";
    const rlim_t used = OwnDescriptorCount();
    bool refused = false;
    bool started = false;
    for (rlim_t allowed = 0; allowed < used + 12; ++allowed) {
      const rlimit limit{allowed, 4096};
      BH_HOST_EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
      auto process = launcher->Spawn(spec);
      if (process) {
        started = true;
        BH_HOST_EXPECT((*process)->KillAndReap(Soon()).has_value());
      } else {
        refused = true;
        BH_HOST_EXPECT(process.error().code == ErrorCode::kResourceExhausted);
        BH_HOST_EXPECT(process.error().sys_errno == EMFILE);
      }
      BH_HOST_EXPECT(!HasZombie());
    }
    const rlimit limit{4096, 4096};
    BH_HOST_EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    BH_HOST_EXPECT(refused);
    BH_HOST_EXPECT(started);
    BH_HOST_EXPECT(launcher->Spawn(spec).has_value());
    BH_HOST_EXPECT(OwnDescriptorCount() <= used);
    return 0;
  });
  EXPECT_EQ(host.Wait(), 0);
}

TEST(Case, G28FiveHundredWorkersLeaveNoDescriptor) {
  const auto launcher = MakeLauncher();
  SpawnSpec spec;
  spec.program = "/bin/true";
  std::size_t before = 0;
  for (int i = 0; i < 500; ++i) {
    auto process = launcher->Spawn(spec);
    ASSERT_TRUE(process) << process.error().message;
    EXPECT_TRUE(RunToEnd(**process).clean());
    process->reset();
    before = i == 0 ? OwnDescriptorCount() : before;
  }
  EXPECT_EQ(OwnDescriptorCount(), before);
  EXPECT_FALSE(HasZombie());
}

// sha256sum(1) computes the expectation, so that the test does not trust the code it tests.
std::string Sha256Of(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> output(
      popen(("sha256sum '" + path + "'").c_str(), "re"), pclose);
  char hex[65] = {};
  return output != nullptr && fread(hex, 1, 64, output.get()) == 64 ? hex : "";
}

TEST(Launcher, ProgramPinnedByDigest) {
  const TestDirectory dir;
  std::filesystem::copy_file("/bin/true", dir.path() + "/worker");
  SpawnSpec spec;
  spec.program = dir.path() + "/worker";
  spec.program_sha256 = Sha256Of(spec.program);
  if (spec.program_sha256->empty()) {
    GTEST_SKIP() << "missing: sha256sum";
  }
  const auto launcher = MakeLauncher();
  auto process = launcher->Spawn(spec);
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_TRUE(RunToEnd(**process).clean());

  std::ofstream(spec.program, std::ios::app) << "x";
  ExpectLaunchError(SpawnError(spec), "prepare", 0, *spec.program_sha256);
  spec.program_sha256 = "12ab";
  ExpectLaunchError(SpawnError(spec), "prepare", 0, "64 hex digits");

  const std::string script = dir.Script("script", "exit 0");
  spec.program = script;
  spec.program_sha256 = Sha256Of(script);
  ExpectLaunchError(SpawnError(spec), "prepare", 0, "script");
  spec.program = "/no/such/worker";
  ExpectLaunchError(SpawnError(spec), "prepare", ENOENT, "No such file");
}

TEST(Launcher, PinnedProgramGetsNoDescriptorOfItself) {
  const auto launcher = MakeLauncher();
  SpawnSpec spec;
  spec.program_sha256 = Sha256Of("/bin/cat");
  if (spec.program_sha256->empty()) {
    GTEST_SKIP() << "missing: sha256sum";
  }
  const auto worker = EchoWorker::Start(*launcher, spec);
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(OpenDescriptors(worker->pid()), (std::set<int>{0, 1, 2}));
}

TEST(Launcher, ForeignProcIsRefused) {
  TestHost host(
      [] {
        SpawnSpec spec;
        spec.program = "/bin/true";
        const auto process = MakeLauncher()->Spawn(spec);  // /proc is still the outer one
        BH_HOST_EXPECT(!process && process.error().reason == "prepare");
        return 0;
      },
      CLONE_NEWPID);
  if (!host.started()) {
    GTEST_SKIP() << "missing: permission to make a pid namespace";
  }
  EXPECT_EQ(host.Wait(), 0);
}

TEST(Launcher, NamesWhatWouldHoldAWorker) {
  const auto launcher = MakeLauncher();
  const auto group = launcher->Walls(false);
  ASSERT_TRUE(group) << group.error().message;
  ASSERT_FALSE(group->mechanisms.empty());
  EXPECT_EQ(group->mechanisms.front(), "process-group");
  const auto best = launcher->Walls(true);
  ASSERT_TRUE(best) << best.error().message;
  EXPECT_EQ(best->mechanisms.front(), best->own_mounts ? "pid-namespace" : "process-group");
  EXPECT_EQ(best->own_mounts, best->no_namespaces_because.empty() || best->own_user);
}

}  // namespace
}  // namespace bulkhead::process
