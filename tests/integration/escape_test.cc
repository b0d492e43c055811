// A worker that was taken over, in the containment of the real one: every attempt of
// tests/workers/hostile ends as its table says, and the world outside does not notice.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "base/errno_error.h"
#include "base/text_file.h"
#include "hostile/attempts.h"
#include "support/bulkhead_test.h"
#include "support/outside_world.h"
#include "support/program.h"

namespace bulkhead::test {
namespace {

constexpr int kExitSkips = 77;
constexpr uid_t kNobody = 65534;
constexpr std::string_view kPhases[] = {"lock-down", "guest-phase"};

// Who starts workers, and what the machine gives to that one.
enum class Mode { kAsStarted, kOrdinaryUser, kWithoutNamespaces };

std::string WorkerPath(std::string_view name) {
  return std::string(BH_TEST_WORKER_DIR) + "/" + std::string(name);
}

bool Write(const char* path, std::string_view text) {
  return WriteTextFile(BorrowedFd(AT_FDCWD), path, text).has_value();
}

int Skip(const char* missing) {
  std::fprintf(stderr, "missing: %s\n", missing);
  return kExitSkips;
}

int BecomeOrdinaryUser() {
  if (geteuid() != 0 || setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
      setresuid(kNobody, kNobody, kNobody) != 0) {
    return Skip("root, who can become an ordinary user");
  }
  // Changing users forbids reading the own /proc, and the maps of a user namespace are there.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  return access(WorkerPath("hostile_worker").c_str(), X_OK) == 0
             ? 0
             : Skip("a build that other users can execute");
}

// Root of a user namespace in which no further namespaces can be made, and without rights.
int LoseNamespaces() {
  const std::string map = "0 " + std::to_string(geteuid()) + " 1";
  const std::string groups = "0 " + std::to_string(getegid()) + " 1";
  if (unshare(CLONE_NEWUSER) != 0 || !Write("/proc/self/setgroups", "deny") ||
      !Write("/proc/self/uid_map", map) || !Write("/proc/self/gid_map", groups) ||
      !Write("/proc/sys/user/max_user_namespaces", "0")) {
    return Skip("user namespaces whose number can be limited");
  }
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capset, &header, none) == 0 ? 0 : Skip("capset");
}

int Enter(Mode mode) {
  switch (mode) {
    case Mode::kAsStarted:
      return 0;
    case Mode::kOrdinaryUser:
      return BecomeOrdinaryUser();
    case Mode::kWithoutNamespaces:
      return LoseNamespaces();
  }
  return 0;
}

// A child that ends by itself, with its wait status.
int StatusOfChild(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    const int code = body();
    std::fflush(nullptr);
    _exit(code);
  }
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

// Where the kernel has no 32-bit calls their instruction itself is a fault.
bool HasCallsOf32Bits() {
  return StatusOfChild([] {
           constexpr long kGetpid = 20;
           long result = kGetpid;
           __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
           return 0;
         }) == 0;
}

std::string ExpectedOf(std::string_view name, int denial) {
  static const bool has_calls_of_32_bits = HasCallsOf32Bits();
  if (name == "a call of the 32-bit kind" && !has_calls_of_32_bits) {
    return "signal 11";
  }
  switch (denial) {
    case hostile::kKilled:
      return "signal 31";
    case hostile::kAllowed:
      return "allowed";
    default:
      return "refused: " + ErrnoText(denial);
  }
}

// What a program says: "result N".
std::string MeaningOf(std::string_view text) {
  long result = 0;
  if (std::sscanf(std::string(text).c_str(), "result %ld", &result) != 1) {
    return "nothing said";
  }
  return result < 0 ? "refused: " + ErrnoText(static_cast<int>(-result)) : "allowed";
}

struct Pose {
  std::string_view name;
  std::string_view phase = "lock-down";
  bool with_directories = false;
  SandboxLevel sandbox = SandboxLevel::kDefault;
};

// Makes one attempt per run, and looks at the world after each.
class Attacker {
 public:
  Attacker() : runtime_(Runtime::Create({}).value()), module_(EmptyModule()) {}

  // How the attempt ended; fails the test if it left a sign.
  std::string Try(const Pose& pose) {
    const std::string end = Run(pose);
    for (const std::string& sign : world_.Signs()) {
      ADD_FAILURE() << pose.name << ", " << pose.phase << ": " << sign;
    }
    return end;
  }

  std::string Run(const Pose& pose) {
    RunRequest request;
    request.worker.executable = WorkerPath("hostile_worker");
    request.worker.sandbox = pose.sandbox;
    request.limits.deadline = std::chrono::seconds(60);
    request.arguments = {"guest", std::string(pose.name), std::string(pose.phase)};
    request.environment = {"PARENT=" + std::to_string(getpid()),
                           "SIBLING=" + std::to_string(world_.sibling()),
                           "TCP_PORT=" + std::to_string(world_.tcp_port()),
                           "SECRET=" + world_.secret(),
                           "NEW_PATH=" + world_.new_path(),
                           "SOCKET_PATH=" + world_.socket_path()};
    request.stdin_from = GuestStream::Descriptor(world_.terminal().get());
    request.stdout_to = GuestStream::Capture(100);
    if (pose.with_directories) {
      request.directories = {{world_.read_only(), "/read-only", false},
                             {world_.writable(), "/writable", true}};
    }
    const RunReport report = RunModule(*runtime_, module_, request);
    containment_ = report.containment;
    if (report.outcome.completed()) {
      return MeaningOf(report.stdout_captured);
    }
    return report.outcome.code == OutcomeCode::kWorkerUnexpectedExit
               ? report.worker_exit.substr(0, report.worker_exit.find(" ("))  // without its name
               : report.outcome.CodeText() + ": " + report.diagnostic;
  }

  bool Obtained(std::string_view mechanism) const {
    return std::find(containment_.begin(), containment_.end(), mechanism) != containment_.end();
  }

  OutsideWorld& world() { return world_; }

 private:
  OutsideWorld world_;  // first: it forks, and the runtime has threads
  std::unique_ptr<Runtime> runtime_;
  AdmittedModule module_;
  std::vector<std::string> containment_;
};

void TryAll(Attacker& attacker) {
  for (const hostile::AttemptTable* table :
       {&hostile::kNetwork, &hostile::kFiles, &hostile::kProcesses, &hostile::kMemory,
        &hostile::kKernel}) {
    for (const hostile::Attempt& attempt : std::span(table->rows, table->count)) {
      for (const std::string_view phase : kPhases) {
        const bool later = phase == "guest-phase" && attempt.guest_phase_denial != 0;
        EXPECT_EQ(attacker.Try({attempt.name, phase}),
                  ExpectedOf(attempt.name, later ? attempt.guest_phase_denial : attempt.denial))
            << attempt.name << ", " << phase;
      }
    }
  }
}

void TryAllPaths(Attacker& attacker) {
  for (const hostile::PathAttempt& attempt :
       std::span(hostile::kPaths.rows, hostile::kPaths.count)) {
    for (const std::string_view phase : kPhases) {
      const std::string with = attacker.Try({attempt.name, phase, true});
      const bool empty_root = attacker.Obtained("empty-root");
      EXPECT_EQ(with,
                ExpectedOf(attempt.name, empty_root ? attempt.in_empty_root : attempt.by_landlock))
          << attempt.name << ", " << phase << ", with directories";
    }
  }
}

int Attack(Mode mode) {
  if (const int skipped = Enter(mode); skipped != 0) {
    return skipped;
  }
  Attacker attacker;
  EXPECT_EQ(attacker.Try({"nothing at all"}), "allowed");
  const bool contained = attacker.Obtained("pid-namespace");
  if (mode == Mode::kWithoutNamespaces) {
    EXPECT_FALSE(contained);
  } else if (!contained) {
    return Skip("permission to make namespaces");
  } else if (mode == Mode::kOrdinaryUser) {
    EXPECT_TRUE(attacker.Obtained("user-namespace"));
  }
  TryAll(attacker);
  TryAllPaths(attacker);
  return testing::Test::HasFailure() ? 1 : 0;
}

void ExpectAllDenied(Mode mode) {
  const int status = StatusOfChild([mode] { return Attack(mode); });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitSkips) {
    GTEST_SKIP() << "what is missing is named above";
  }
  EXPECT_EQ(status, 0);
}

TEST(Bar, R11EscapesAreDeniedAsStarted) {
  ExpectAllDenied(Mode::kAsStarted);
}

TEST(Bar, R11EscapesAreDeniedToAnOrdinaryUser) {
  ExpectAllDenied(Mode::kOrdinaryUser);
}

TEST(Bar, R11EscapesAreDeniedWithoutNamespaces) {
  ExpectAllDenied(Mode::kWithoutNamespaces);
}

// The attempts are real, and the world outside would notice.
TEST(Bar, R11WithoutTheSandboxEscapesSucceed) {
  const int status = StatusOfChild([] {
    Attacker attacker;
    const auto succeeds = [&](std::string_view name) {
      EXPECT_EQ(attacker.Run({name, "lock-down", false, SandboxLevel::kNone}), "allowed") << name;
      return attacker.world().Signs().size();
    };
    EXPECT_EQ(succeeds("map writable code"), 0U);
    EXPECT_EQ(succeeds("open"), 0U);
    EXPECT_EQ(succeeds("tcp to a listener of the host"), 1U);
    EXPECT_EQ(succeeds("unix socket by path"), 1U);
    EXPECT_EQ(succeeds("chmod"), 1U);
    EXPECT_EQ(succeeds("mkdir"), 2U);
    EXPECT_EQ(succeeds("limit a sibling"), 3U);
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

// Only the filters, in a program of nothing but a C library.
void TryUnderFilters(OutsideWorld& world, const std::string& program,
                     const hostile::Attempt& attempt) {
  for (const std::string_view phase : kPhases) {
    const bool later = phase == "guest-phase" && attempt.guest_phase_denial != 0;
    const std::string expected =
        ExpectedOf(attempt.name, later ? attempt.guest_phase_denial : attempt.denial);
    Program process({WorkerPath("under_filters"), program, attempt.name, std::string(phase),
                     std::to_string(world.sibling()), world.secret(), world.new_path()});
    const std::string said = process.ReadLine().value_or("");
    const int end = process.Wait().value_or(1);
    const std::string seen = end < 0 ? "signal " + std::to_string(-end) : MeaningOf(said);
    EXPECT_EQ(seen, expected) << attempt.name << ", " << phase;
    EXPECT_EQ(world.Signs(), std::vector<std::string>{}) << attempt.name << ", " << phase;
  }
}

void ExpectFiltersHold(const std::string& program) {
  OutsideWorld world;
  TryUnderFilters(world, program, {"ordinary work", hostile::kAllowed, nullptr});
  for (const hostile::AttemptTable* table :
       {&hostile::kNetwork, &hostile::kFiles, &hostile::kProcesses, &hostile::kMemory,
        &hostile::kKernel}) {
    for (const hostile::Attempt& attempt : std::span(table->rows, table->count)) {
      TryUnderFilters(world, program, attempt);
    }
  }
}

TEST(Bar, R12FiltersHoldInAProgramOfThisLibc) {
  ExpectFiltersHold(WorkerPath("hostile_libc"));
}

TEST(Bar, R12FiltersHoldInAProgramOfAnotherLibc) {
  const std::string program = WorkerPath("hostile_musl");
  if (access(program.c_str(), X_OK) != 0) {
    GTEST_SKIP() << "missing: musl-gcc when this was built";
  }
  ExpectFiltersHold(program);
}

}  // namespace
}  // namespace bulkhead::test
