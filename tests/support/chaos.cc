#include "support/chaos.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "support/bulkhead_test.h"
#include "support/busy_guests.h"
#include "support/proc_view.h"
#include "support/temp_dir.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Disturbance : std::uint8_t {
  kNone,
  kCancel,      // politely, as soon as the guest executes
  kForce,       // at a stage that is drawn
  kDeadline,    // of some milliseconds, wherever that comes
  kKillWorker,  // as the kernel does when memory is short
};

// What is to happen to the run of this thread.
struct Plan {
  Disturbance how = Disturbance::kNone;
  Stage stage = Stage::kExecute;
  const CancelSource* source = nullptr;
};

thread_local const Plan* plan_of_this_thread = nullptr;

std::string Programs(std::string_view name) {
  return std::string(BH_TEST_WORKER_DIR) + "/" + std::string(name);
}

RunRequest CalmRequest(std::string executable, const std::string& destination) {
  RunRequest request;
  request.worker.executable = std::move(executable);
  request.limits.deadline = seconds(60);
  request.arguments = {"guest"};
  OutputGrant grant;
  grant.path = destination;
  request.output = grant;
  return request;
}

}  // namespace

// Events come on the run's own thread.
class Chaos::Disturber final : public Observer {
 public:
  void OnStage(const RunEvent& event) override {
    const Plan* plan = plan_of_this_thread;
    if (plan == nullptr || event.stage != plan->stage) {
      return;
    }
    if (plan->how == Disturbance::kCancel || plan->how == Disturbance::kForce) {
      plan->source->Cancel();
    } else if (plan->how == Disturbance::kKillWorker) {
      kill(event.worker_pid, SIGKILL);  // not reaped before this thread goes on
    }
  }
};

struct Chaos::Kind {
  std::string worker;  // of tests/workers; empty: the real one
  Disturbance how = Disturbance::kNone;
  std::vector<std::string> codes;
  bool spins = false;    // the guest of the real worker
  bool escapes = false;  // it leaves descendants that only some machines can hold
};

const std::vector<Chaos::Kind>& Chaos::Kinds() {
  static const std::vector<Kind> kKinds = {
      {"honest_echo", Disturbance::kNone, {"worker-completed"}},
      {"honest_echo", Disturbance::kNone, {"worker-completed"}},
      {"output_empty", Disturbance::kNone, {"worker-completed"}},
      {"forks_setsid_twice", Disturbance::kNone, {"worker-completed"}, false, true},
      {"", Disturbance::kNone, {"worker-output-commit"}},  // its guest creates no output
      {"reports_trapped", Disturbance::kNone, {"trapped"}},
      {"exit_137_after_started", Disturbance::kNone, {"worker-unexpected-exit"}},
      {"crash_segv", Disturbance::kNone, {"worker-unexpected-exit"}},
      {"half_frame_sigkill", Disturbance::kNone, {"worker-unexpected-exit"}},
      {"garbage_magic", Disturbance::kNone, {"worker-protocol"}},
      {"answers_cancelled", Disturbance::kCancel, {"cancelled"}},
      {"ignores_cancel", Disturbance::kCancel, {"forced-containment-cancelled"}},
      {"ignores_cancel", Disturbance::kForce, {"forced-containment-cancelled", "cancelled"}},
      {"abandons_runaway",
       Disturbance::kForce,
       {"forced-containment-cancelled", "cancelled"},
       false,
       true},
      {"", Disturbance::kForce, {"forced-containment-cancelled", "cancelled"}, true},
      {"",
       Disturbance::kDeadline,
       {"forced-containment-deadline-exceeded", "deadline-exceeded"},
       true},
      {"ignores_cancel",
       Disturbance::kDeadline,
       {"forced-containment-deadline-exceeded", "deadline-exceeded"}},
      {"ignores_cancel", Disturbance::kKillWorker, {"worker-unexpected-exit"}},
  };
  return kKinds;
}

Chaos::Chaos(std::string directory, std::uint64_t seed)
    : directory_(std::move(directory)),
      random_(seed),
      empty_(EmptyModule()),
      disturber_(std::make_unique<Disturber>()) {
  if (HaveWat2Wasm()) {
    spinning_ = Admit(PlainGuest("(loop $for_ever (br $for_ever))"));
  }
  RuntimeOptions options;
  options.observer = disturber_.get();
  runtime_ = Runtime::Create(options).value();
  const RunRequest like = CalmRequest(Programs("honest_echo"), directory_ + "/first");
  const RunReport first = RunModule(*runtime_, empty_, like);
  if (!first.outcome.completed()) {
    faults_.push_back("the first run ended as " + first.outcome.CodeText());
  }
  escapes_are_caught_ = CatchesEscapes(first);
  if (const Status kept = KeepWarm(*runtime_, like, kSpares); !kept) {
    faults_.push_back("no spares: " + kept.error().message);
  }
}

Chaos::~Chaos() = default;

std::vector<std::string> Chaos::Run(int threads, int runs) {
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([this, thread, runs, seed = random_()] { RunSome(thread, runs, seed); });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
  return std::exchange(faults_, {});
}

void Chaos::RunSome(int thread, int runs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::string destination = directory_ + "/of-thread-" + std::to_string(thread);
  std::ofstream(destination) << kOldContent;
  for (int run = 0; run < runs; ++run) {
    const Kind& kind = Kinds()[random() % Kinds().size()];
    if ((kind.spins && !spinning_) || (kind.escapes && !escapes_are_caught_)) {
      continue;
    }
    std::string fault = RunOne(kind, destination, random);
    if (!fault.empty()) {
      const std::lock_guard lock(mutex_);
      faults_.push_back(std::move(fault));
    }
  }
}

std::string Chaos::RunOne(const Kind& kind, const std::string& destination,
                          std::mt19937_64& random) {
  static constexpr Stage kForceable[] = {Stage::kLaunch, Stage::kHandshake, Stage::kHandOver,
                                         Stage::kCompile, Stage::kExecute};
  const CancelSource source = *CancelSource::Create();
  RunRequest request =
      CalmRequest(kind.worker.empty() ? std::string(BH_BIN_DIR) + "/" + std::string(kWasmWorkerName)
                                      : Programs(kind.worker),
                  destination);
  Plan plan{kind.how, Stage::kExecute, &source};
  if (kind.how == Disturbance::kCancel) {
    request.cancel = source.token();
    request.worker.grace = milliseconds(random() % 10 + 1);
    if (kind.codes.front() == "cancelled") {
      request.worker.grace = seconds(60);  // it answers, however busy the machine is
    }
  } else if (kind.how == Disturbance::kForce) {
    request.force = source.token();
    plan.stage = kForceable[random() % std::size(kForceable)];
  } else if (kind.how == Disturbance::kDeadline) {
    request.limits.deadline = milliseconds(random() % 60 + 1);
    request.worker.grace = milliseconds(random() % 30 + 1);
  }
  if (kind.worker.empty()) {
    // Spares are of another program; a grace that a busy machine can keep.
    request.worker.grace = std::max<std::chrono::nanoseconds>(request.worker.grace, seconds(1));
  }
  const std::string before = ReadFile(destination);
  plan_of_this_thread = &plan;
  const RunReport report = RunModule(*runtime_, kind.spins ? *spinning_ : empty_, request);
  plan_of_this_thread = nullptr;
  if (kind.how == Disturbance::kNone && kind.worker == "honest_echo") {
    const std::lock_guard lock(mutex_);
    times_.push_back(static_cast<double>(report.elapsed.count()) / 1000);
  }
  return Judge(kind, report, destination, before);
}

std::string Chaos::Judge(const Kind& kind, const RunReport& report, const std::string& destination,
                         const std::string& before) {
  const std::string code = report.outcome.CodeText();
  const std::string about = kind.worker + " ended as " + code + " (" + report.worker_exit + ", " +
                            std::string(StageName(report.stage)) + ", " + report.diagnostic + "): ";
  if (code == "worker-unexpected-exit" && report.worker_exit == "reaped by somebody else") {
    return {};  // a host and a kernel that lose exit statuses: what is said then
  }
  if (std::find(kind.codes.begin(), kind.codes.end(), code) == kind.codes.end()) {
    return about + "expected " + kind.codes.front();
  }
  if (report.ledger.spawned != report.ledger.reaped) {
    return about + "not reaped";
  }
  const std::string expected = code != "worker-completed"     ? before
                               : kind.worker == "honest_echo" ? std::string(kNewContent)
                                                              : std::string();
  if (ReadFile(destination) != expected) {
    return about + "the output is '" + ReadFile(destination) + "'";
  }
  return {};
}

bool Chaos::Settle() {
  return Eventually(seconds(30), [this] {
    const Snapshot snapshot = runtime_->snapshot();
    return snapshot.warm.idle == kSpares && snapshot.cleanup_pending == 0;
  });
}

std::vector<double> Chaos::TakeTimes() {
  std::vector<double> times = std::exchange(times_, {});
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace bulkhead::test
