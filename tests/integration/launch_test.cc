// What a worker is started with, and what is said when it cannot be started.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "support/bulkhead_test.h"
#include "support/proc_view.h"
#include "support/program.h"

namespace bulkhead::test {
namespace {

class OneShot : public BulkheadTest {
 protected:
  using Facts = std::multimap<std::string, std::string>;

  // What describes_itself says of a run under `request`.
  Facts Describe(RunRequest request) {
    request.stdout_to = GuestStream::Capture(1U << 20);
    const RunReport report = Run(request);
    ExpectOutcome(report, "worker-completed", kClean);
    Facts facts;
    std::istringstream lines(report.stdout_captured);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t equals = line.find('=');
      facts.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
    return facts;
  }

  Facts Describe() { return Describe(RequestFor("describes_itself")); }

  static std::string ValueOf(const Facts& facts, const std::string& key) {
    const auto found = facts.find(key);
    return found == facts.end() ? "(absent)" : found->second;
  }

  // A copy of an honest worker.
  std::string CopyWorker(const std::string& path) {
    std::filesystem::copy_file(WorkerPath("honest_echo"), path);
    return path;
  }

  void ExpectLaunchFailure(const std::string& executable, std::string_view cause) {
    SCOPED_TRACE(executable);
    RunRequest request = RequestWithOutput("honest_echo");
    request.worker.executable = executable;
    const RunReport report = Run(request);
    ExpectOutcome(report, "worker-launch", kNothing);
    EXPECT_NE(report.diagnostic.find(std::filesystem::path(executable).filename().string()),
              std::string::npos)
        << report.diagnostic;
    EXPECT_NE(report.diagnostic.find(cause), std::string::npos) << report.diagnostic;
    EXPECT_LT(report.elapsed, std::chrono::seconds(20));
    EXPECT_EQ(ReadFile(Destination()), "original");
  }
};

// Cases of the collection of field reports.
using Case = OneShot;

std::string FileSha256(const std::string& path) {
  Program tool({"sha256sum", path});
  return tool.ReadLine().value_or("").substr(0, 64);
}

TEST_F(Case, G30EveryReasonIsNamed) {
  const TempDir programs;
  ExpectLaunchFailure(programs.Path("missing"), "No such file or directory");
  ExpectLaunchFailure(programs.path(), "");
  const std::string plain = programs.Write("plain", "just text\n");
  chmod(plain.c_str(), 0755);
  ExpectLaunchFailure(plain, "Exec format error");
  const std::string not_executable = CopyWorker(programs.Path("not_executable"));
  chmod(not_executable.c_str(), 0644);
  ExpectLaunchFailure(not_executable, "Permission denied");
  const std::string script = programs.Write("script", "#!/no/such/interpreter\n");
  chmod(script.c_str(), 0755);
  ExpectLaunchFailure(script, "No such file or directory");
  ExpectLaunchFailure(programs.Write("file", "") + "/below", "Not a directory");
  const std::string empty = programs.Write("empty", "");
  chmod(empty.c_str(), 0755);
  ExpectLaunchFailure(empty, "Exec format error");
}

// The loader's complaint comes after a successful exec: it is in the tail of the worker's stderr.
TEST_F(Case, G30AMissingLibraryIsNamed) {
  const TempDir programs;
  std::string image = ReadFile(WorkerPath("honest_echo"));
  const std::size_t needed = image.find("libstdc++.so");
  if (needed == std::string::npos) {
    GTEST_SKIP() << "the test worker is linked statically";
  }
  image.replace(needed, 12, "libmissin.so");
  RunRequest request = RequestWithOutput("honest_echo");
  request.worker.executable = programs.Write("worker", image);
  chmod(request.worker.executable.c_str(), 0755);
  const RunReport report = Run(request);
  EXPECT_TRUE(report.outcome.code == OutcomeCode::kWorkerLaunch ||
              report.outcome.code == OutcomeCode::kWorkerUnexpectedExit)
      << report.outcome.CodeText();
  EXPECT_NE(report.worker_stderr_tail.find("libmissin.so"), std::string::npos)
      << report.worker_stderr_tail;
  EXPECT_LT(report.elapsed, std::chrono::seconds(20));
  ExpectDestinationUntouched();
}

TEST_F(OneShot, MissingWorkingDirectoryIsNamed) {
  RunRequest request = RequestFor("honest_echo");
  request.worker.working_directory = dir().Path("missing");
  const RunReport report = Run(request);
  ExpectOutcome(report, "worker-launch", kNothing);
  EXPECT_NE(report.diagnostic.find("missing"), std::string::npos) << report.diagnostic;
}

TEST_F(OneShot, ExpectedDigestIsThatOfTheFile) {
  RunRequest request = RequestFor("honest_echo");
  request.worker.executable_sha256 = FileSha256(request.worker.executable);
  ASSERT_EQ(request.worker.executable_sha256->size(), 64U);
  ExpectOutcome(Run(request), "worker-completed", kClean);
  request.worker.executable_sha256 = std::string(64, '0');
  const RunReport report = Run(request);
  ExpectOutcome(report, "worker-launch", kNothing);
  EXPECT_FALSE(report.diagnostic.empty());
}

TEST_F(OneShot, WorkersAreFoundThroughSymbolicLinksToo) {
  const std::string link = dir().Path("link");
  ASSERT_EQ(symlink(WorkerPath("honest_echo").c_str(), link.c_str()), 0);
  RunRequest request = RequestFor("honest_echo");
  request.worker.executable = link;
  ExpectOutcome(Run(request), "worker-completed", kClean);
}

TEST_F(Case, G35OddPathsOfWorkersWork) {
  for (const std::string& name :
       {std::string("a b"), std::string("a\"b"), std::string("a\nb"), std::string("\xE2\x98\x83"),
        std::string("\xFF"), std::string(255, 'n')}) {
    SCOPED_TRACE(testing::PrintToString(name));
    RunRequest request = RequestFor("honest_echo");
    request.worker.executable = CopyWorker(dir().Path(name));
    ExpectOutcome(Run(request), "worker-completed", kClean);
  }
}

// G27, section 4.1: whatever the host has open, without close-on-exec even, the worker has its four
// descriptors.
TEST_F(Case, G27WorkersSeeTheirOwnDescriptorsOnly) {
  const UniqueFd secret(
      open("/etc/hostname", O_RDONLY));  // NOLINT(android-cloexec-open): inheritable on purpose
  ASSERT_TRUE(secret.valid());
  const UniqueFd high(fcntl(secret.get(), F_DUPFD, 700));
  const Facts facts = Describe();
  std::vector<std::string> descriptors;
  for (const auto& [key, value] : facts) {
    if (key.starts_with("fd")) {
      descriptors.push_back(key);
    }
  }
  EXPECT_EQ(descriptors, (std::vector<std::string>{"fd0", "fd1", "fd2", "fd3"}));
  EXPECT_EQ(ValueOf(facts, "fd0"), "/dev/null");
  EXPECT_EQ(ValueOf(facts, "fd1"), "/dev/null");
  EXPECT_EQ(ValueOf(facts, "fd2").find("pipe:"), 0U);
  EXPECT_EQ(ValueOf(facts, "fd3").find("socket:"), 0U);
}

// G27: also when the host runs without standard descriptors of its own.
TEST_F(OneShot, HostsWithoutStandardDescriptorsWork) {
  const UniqueFd kept_in(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100));
  ASSERT_TRUE(kept_in.valid());
  close(STDIN_FILENO);
  const Facts facts = Describe();
  const int restored = dup2(kept_in.get(), STDIN_FILENO);
  EXPECT_EQ(restored, STDIN_FILENO);
  EXPECT_EQ(ValueOf(facts, "fd0"), "/dev/null");
  EXPECT_EQ(ValueOf(facts, "fd3").find("socket:"), 0U);
}

TEST_F(OneShot, WorkersInheritNothingOfTheHost) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the run has not started
  setenv("BULKHEAD_TEST_SECRET", "secret", 1);
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction old_action{};
  sigaction(SIGPIPE, &ignore, &old_action);
  sigset_t usr2;
  sigemptyset(&usr2);
  sigaddset(&usr2, SIGUSR2);
  sigset_t old_mask;
  pthread_sigmask(SIG_BLOCK, &usr2, &old_mask);
  RestartRuntime({});  // its threads inherit the mask
  const Facts facts = Describe();
  pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
  sigaction(SIGPIPE, &old_action, nullptr);
  unsetenv("BULKHEAD_TEST_SECRET");  // NOLINT(concurrency-mt-unsafe): the run is over

  EXPECT_EQ(ValueOf(facts, "argc"), "1");
  EXPECT_EQ(ValueOf(facts, "argv0"), WorkerPath("describes_itself"));
  EXPECT_EQ(ValueOf(facts, "environment"), "0");
  EXPECT_EQ(ValueOf(facts, "cwd"), "/");
  EXPECT_EQ(ValueOf(facts, "group_leader"), "yes");
  EXPECT_EQ(ValueOf(facts, "parent_death_signal"), std::to_string(SIGKILL));
  EXPECT_EQ(ValueOf(facts, "ignored"), "");
  EXPECT_EQ(ValueOf(facts, "blocked"), "");
  EXPECT_EQ(ValueOf(facts, "core"), "0");
  EXPECT_EQ(ValueOf(facts, "address_space"), "unlimited");
}

TEST_F(OneShot, RequestsArriveUnchanged) {
  RunRequest request = RequestFor("describes_itself");
  request.worker.working_directory = dir().path();
  request.worker.descriptors_max = 77;
  request.worker.sandbox = SandboxLevel::kNone;
  request.limits.deadline = std::chrono::seconds(50);
  request.limits.cpu_time = std::chrono::milliseconds(6500);
  request.limits.fuel = 12345;
  request.limits.memory_bytes = 5U << 20;
  request.limits.compile_memory_bytes = 777U << 20;
  request.limits.stack_bytes = 3U << 20;
  request.limits.scratch_bytes = 4096;
  request.limits.cooperative_stop = false;
  request.arguments = {"guest", "", "two words"};
  request.environment = {"K=V", "EMPTY="};
  const TempDir granted;
  request.directories = {{granted.path(), "/data", false}, {granted.path(), "/work", true}};
  const Facts facts = Describe(request);
  EXPECT_EQ(ValueOf(facts, "cwd"), dir().path());
  EXPECT_EQ(ValueOf(facts, "nofile"), "77");
  // The parent's own limit is the backstop, a second behind the one that the worker sets itself.
  EXPECT_EQ(ValueOf(facts, "cpu"), "8");
  EXPECT_EQ(ValueOf(facts, "hello.sandbox"), "0");
  EXPECT_EQ(ValueOf(facts, "hello.cpu_seconds"), "7");
  EXPECT_EQ(ValueOf(facts, "hello.scratch"), "4096");
  EXPECT_EQ(ValueOf(facts, "hello.compile_memory"), std::to_string(777U << 20));
  EXPECT_EQ(ValueOf(facts, "execute.fuel"), "12345");
  EXPECT_EQ(ValueOf(facts, "execute.memory"), std::to_string(5U << 20));
  EXPECT_EQ(ValueOf(facts, "execute.stack"), std::to_string(3U << 20));
  EXPECT_EQ(ValueOf(facts, "execute.cooperative"), "0");
  EXPECT_EQ(ValueOf(facts, "execute.module_bytes"), std::to_string(EmptyModule().size_bytes()));
  const std::uint64_t remaining = std::stoull(ValueOf(facts, "execute.remaining_ms"));
  EXPECT_GT(remaining, 10'000U);
  EXPECT_LE(remaining, 50'000U);
  EXPECT_EQ(facts.count("argument"), 3U);
  EXPECT_EQ(facts.count("variable"), 2U);
  EXPECT_EQ(facts.count("directory"), 2U);
  EXPECT_EQ(ValueOf(facts, "module_sealed"), "yes");
}

TEST_F(OneShot, FuelAndOutputAreAbsentUnlessAskedFor) {
  const Facts facts = Describe();
  EXPECT_EQ(ValueOf(facts, "execute.fuel"), "0");
  EXPECT_EQ(ValueOf(facts, "execute.output"), "");
  EXPECT_EQ(ValueOf(facts, "hello.sandbox"), "1");
  EXPECT_EQ(ValueOf(facts, "hello.cpu_seconds"), "0");
}

TEST_F(Case, G36LargeArgumentsAndVariablesArriveWhole) {
  RunRequest request = RequestFor("describes_itself");
  request.stdout_to = GuestStream::Capture(8U << 20);
  for (const std::size_t bytes : {131'000U, 131'072U, 1'000'000U}) {
    SCOPED_TRACE(bytes);
    request.arguments = {"guest", std::string(bytes, 'a')};
    request.environment = {"BIG=" + std::string(bytes, 'b')};
    const RunReport report = Run(request);
    ExpectOutcome(report, "worker-completed", kClean);
    EXPECT_NE(report.stdout_captured.find("argument=" + request.arguments[1] + "\n"),
              std::string::npos);
    EXPECT_NE(report.stdout_captured.find("variable=" + request.environment[0] + "\n"),
              std::string::npos);
  }
}

// G28: descriptors run out at every possible point of a run in turn. Each run ends typed, nothing
// is lost, and with descriptors back all is well.
TEST_F(Case, G28RunsOutOfDescriptorsAreTyped) {
  RunRequest request = RequestFor("honest_echo");
  request.stdout_to = GuestStream::Capture(100);
  request.stderr_to = GuestStream::Capture(100);
  const AdmittedModule module = EmptyModule();
  ExpectOutcome(Run(module, request), "worker-completed");
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
  const auto before = OpenDescriptors();
  const rlim_t last = static_cast<rlim_t>(before.rbegin()->first) + 60;
  bool completed = false;
  int exhausted = 0;
  // The limit is on the number of new ones; those in use above it stay open.
  for (rlim_t numbers = 4; numbers < last && !completed; ++numbers) {
    const TempDir outputs;
    request.output = OutputGrant{};
    request.output->path = outputs.Path("destination");
    const rlimit limit{numbers, old_limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const RunReport report = RunModule(runtime(), module, request);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old_limit), 0);
    SCOPED_TRACE("descriptors below " + std::to_string(numbers) + ": " + report.outcome.CodeText() +
                 ": " + report.diagnostic);
    CheckAfterRun(report);
    EXPECT_EQ(OpenDescriptors(), before);
    completed = report.outcome.completed();
    if (!completed) {
      ++exhausted;
      EXPECT_EQ(report.outcome.kind(), OutcomeKind::kFailure);
      EXPECT_NE(report.diagnostic.find("Too many open files"), std::string::npos);
      EXPECT_EQ(outputs.Entries(), std::vector<std::string>{});
    }
  }
  EXPECT_TRUE(completed);
  EXPECT_GT(exhausted, 5);
}

TEST_F(OneShot, FindWorkerNamesEveryPlaceItTried) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no run is active
  setenv("BULKHEAD_WORKER_DIR", dir().path().c_str(), 1);
  const Result<std::string> missing = FindWorker("no-such-worker");
  CopyWorker(dir().Path("a-worker"));
  const Result<std::string> found = FindWorker("a-worker");
  unsetenv("BULKHEAD_WORKER_DIR");  // NOLINT(concurrency-mt-unsafe): no run is active
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find(dir().path()), std::string::npos)
      << missing.error().message;
  EXPECT_NE(missing.error().message.find("libexec/bulkhead"), std::string::npos)
      << missing.error().message;
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(*found, dir().Path("a-worker"));
}

}  // namespace
}  // namespace bulkhead::test
