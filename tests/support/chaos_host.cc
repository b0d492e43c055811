// A host program under mixed load (support/chaos.h), for tests of what surrounds it:
//   chaos_host DIRECTORY SEED MODE [N]
//
//   until-killed   goes on for ever; a line "round" whenever some runs are over
//   N runs as one of these, then what was wrong, one line each, and "done":
//   as-it-is
//   sigchld-ignored, sigchld-no-wait   the kernel reaps children of this program
//   sigchld-handler                    a handler of SIGCHLD reaps whatever there is
//   foreign-wait                       a thread reaps whatever there is
//   few-numbers    process 1 of a pid namespace of its own: with fifty numbers for all processes,
//                  among bystanders; also says how many workers there were, and how many
//                  bystanders got a number again. Exit 77 and why if that is not to be had.
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/bystanders.h"
#include "support/chaos.h"
#include "support/leak_guard.h"
#include "support/proc_view.h"

namespace bulkhead::test {
namespace {

constexpr int kSkipped = 77;
constexpr int kThreads = 2;
constexpr int kBystanders = 12;

void Say(const std::string& line) {
  std::cout << line << "\n" << std::flush;
}

int ReportFaults(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) {
    Say("fault " + fault);
  }
  return faults.empty() ? 0 : 1;
}

void ReapWhateverThereIs(int /*signal*/) {
  const int kept = errno;
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  errno = kept;
}

void SetSigchld(void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGCHLD, &action, nullptr);
}

// Reaps as a library that thinks it is alone: from a thread that waits for every child.
class ForeignWait {
 public:
  ForeignWait() : thread_([this] { Loop(); }) {}

  ForeignWait(const ForeignWait&) = delete;
  ForeignWait& operator=(const ForeignWait&) = delete;

  ~ForeignWait() {
    over_ = true;
    thread_.join();
  }

 private:
  void Loop() {
    while (!over_) {
      if (waitpid(-1, nullptr, WNOHANG) <= 0) {
        std::this_thread::yield();
      }
    }
  }

  std::atomic<bool> over_{false};
  std::thread thread_;
};

// What the host does to its children, by mode. false: there is no such mode.
bool Reap(const std::string& mode, std::optional<ForeignWait>& wait) {
  if (mode == "sigchld-ignored") {
    SetSigchld(SIG_IGN, 0);
  } else if (mode == "sigchld-no-wait") {
    SetSigchld(SIG_DFL, SA_NOCLDWAIT);
  } else if (mode == "sigchld-handler") {
    SetSigchld(ReapWhateverThereIs, 0);  // calls are interrupted, not resumed
  } else if (mode == "foreign-wait") {
    wait.emplace();
  } else {
    return mode == "as-it-is";
  }
  return true;
}

int RunSome(const std::string& directory, std::uint64_t seed, const std::string& mode, int runs) {
  const LeakGuard guard;
  std::vector<std::string> faults;
  {
    Chaos chaos(directory, seed);
    std::optional<ForeignWait> wait;  // from here on: what Chaos prepared is not to be disturbed
    if (!Reap(mode, wait)) {
      return 2;
    }
    faults = chaos.Run(kThreads, (runs + kThreads - 1) / kThreads);
    if (!chaos.Settle()) {
      faults.emplace_back("spares or cleanup are not what they should be at rest");
    }
  }
  for (std::string& leak : guard.Leaks()) {
    faults.push_back(std::move(leak));
  }
  const int exit_code = ReportFaults(faults);
  Say("done");
  return exit_code;
}

// Before Linux 6.14 there is one limit for the whole machine, which is not ours to change.
std::string WhyNotFewNumbers() {
  if (getpid() != 1) {
    return "missing: a pid namespace of its own";
  }
  utsname kernel{};
  uname(&kernel);
  int major = 0;
  int minor = 0;
  if (std::sscanf(kernel.release, "%d.%d", &major, &minor) != 2 || major < 6 ||
      (major == 6 && minor < 14)) {
    return "missing: limits of process numbers for a namespace (Linux 6.14)";
  }
  // Numbers up to 300 are given out once only.
  std::ofstream limit("/proc/sys/kernel/pid_max");
  limit << 350 << std::flush;
  return limit ? "" : "missing: the right to set the limit of process numbers";
}

int RunAmongBystanders(const std::string& directory, std::uint64_t seed, int runs) {
  if (const std::string why = WhyNotFewNumbers(); !why.empty()) {
    Say(why);
    return kSkipped;
  }
  std::vector<std::string> faults;
  {
    Bystanders bystanders(kBystanders);
    const auto replace = [&] {
      if (!bystanders.Replace()) {
        faults.emplace_back("a signal reached a bystander");
      }
    };
    Chaos chaos(directory, seed);
    for (int run = 0; run < runs && faults.empty(); run += 2 * kThreads) {
      faults = chaos.Run(kThreads, 2);
      replace();
    }
    for (int i = 0; i < kBystanders; ++i) {
      replace();
    }
    Say("spawned " + std::to_string(chaos.runtime().snapshot().workers.spawned));
    Say("reused " + std::to_string(bystanders.reused()));
  }
  const int exit_code = ReportFaults(faults);
  Say("done");
  return exit_code;
}

[[noreturn]] void RunUntilKilled(const std::string& directory, std::uint64_t seed) {
  Chaos chaos(directory, seed);
  for (;;) {
    ReportFaults(chaos.Run(kThreads, 2));
    Say("round");
  }
}

int Main(const std::string& directory, std::uint64_t seed, const std::string& mode, int runs) {
  if (mode == "until-killed") {
    RunUntilKilled(directory, seed);
  }
  if (mode == "few-numbers") {
    return RunAmongBystanders(directory, seed, runs);
  }
  return RunSome(directory, seed, mode, runs);
}

}  // namespace
}  // namespace bulkhead::test

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fputs("usage: chaos_host DIRECTORY SEED MODE [N]\n", stderr);
    return 2;
  }
  return bulkhead::test::Main(argv[1], std::stoull(argv[2]), argv[3],
                              argc == 5 ? std::stoi(argv[4]) : 0);
}
