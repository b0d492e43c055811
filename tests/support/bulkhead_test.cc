#include "support/bulkhead_test.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include "support/proc_view.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

// (module (memory (export "memory") 1) (func (export "_start")))
constexpr std::array<std::uint8_t, 50> kEmptyModule = {
    0x00, 'a',  's',  'm',  0x01, 0x00, 0x00, 0x00,            // magic, version
    0x01, 0x04, 0x01, 0x60, 0x00, 0x00,                        // type: () -> ()
    0x03, 0x02, 0x01, 0x00,                                    // one function of it
    0x05, 0x03, 0x01, 0x00, 0x01,                              // one memory of at least one page
    0x07, 0x13, 0x02, 0x06, 'm',  'e',  'm',  'o',  'r', 'y',  // exports
    0x02, 0x00, 0x06, '_',  's',  't',  'a',  'r',  't', 0x00,
    0x00, 0x0a, 0x04, 0x01, 0x02, 0x00, 0x0b,  // its body
};

}  // namespace

LedgerColumn ColumnOf(const WorkerLedger& ledger) {
  return {ledger.spawned, ledger.cancel_sent, ledger.grace_expired,
          ledger.forced,  ledger.reaped,      ledger.protocol_failures};
}

bool CatchesEscapes(const RunReport& report) {
  return std::any_of(report.containment.begin(), report.containment.end(),
                     [](const std::string& mechanism) {
                       return mechanism == "pid-namespace" || mechanism.starts_with("cgroup");
                     });
}

BulkheadTest::BulkheadTest() : stages_(std::make_unique<StageLog>()) {
  guard_.NoteDirectory(dir_.path());
  RestartRuntime({});
}

void BulkheadTest::RestartRuntime(RuntimeOptions options) {
  runtime_.reset();
  options.observer = stages_.get();
  runtime_ = Runtime::Create(options).value();
}

void BulkheadTest::TearDown() {
  for (const std::string& fault : LedgerFaults(runtime_->snapshot())) {
    ADD_FAILURE() << fault;
  }
  runtime_.reset();
  for (const std::string& leak : guard_.Leaks()) {
    ADD_FAILURE() << "left behind: " << leak;
  }
}

AdmittedModule Admit(std::span<const std::uint8_t> bytes) {
  return ModuleSource::FromBytes(bytes, ModulePolicy::kModuleBytesCeiling)
      .value()
      .Admit({})
      .value();
}

AdmittedModule Admit(std::string_view text) {
  return Admit(AssembleText(text));
}

AdmittedModule EmptyModule() {
  return Admit(kEmptyModule);
}

std::string BulkheadTest::WorkerPath(std::string_view name) {
  return std::string(BH_TEST_WORKER_DIR) + "/" + std::string(name);
}

RunRequest BulkheadTest::RequestFor(std::string_view worker) {
  RunRequest request;
  request.worker.executable = WorkerPath(worker);
  request.worker.grace = std::chrono::seconds(1);
  request.limits.deadline = kLongDeadline;
  request.arguments = {"guest"};
  return request;
}

RunRequest BulkheadTest::GuestRequest() {
  RunRequest request = RequestFor("");
  const char* level = std::getenv("BULKHEAD_TEST_SANDBOX");
  if (level != nullptr && level == SandboxLevelName(SandboxLevel::kStrict)) {
    request.worker.sandbox = SandboxLevel::kStrict;
  }
  if (const char* required = std::getenv("BULKHEAD_TEST_REQUIRE"); required != nullptr) {
    std::istringstream words(required);
    for (std::string word; words >> word;) {
      request.worker.required_mechanisms.push_back(word);
    }
  }
  request.worker.executable = std::string(BH_BIN_DIR) + "/" + std::string(kWasmWorkerName);
  return request;
}

RunRequest BulkheadTest::RequestWithOutput(std::string_view worker) const {
  RunRequest request = RequestFor(worker);
  OutputGrant grant;
  grant.path = dir_.Write("destination", "original");
  request.output = grant;
  return request;
}

bool BulkheadTest::EscapesAreCaught() {
  return CatchesEscapes(Run(RequestFor("honest_echo")));
}

void BulkheadTest::GrantAliveLock(RunRequest& request) const {
  request.directories.push_back({dir_.path(), "/alive", true});
}

RunReport BulkheadTest::Run(const RunRequest& request) {
  return Run(EmptyModule(), request);
}

RunReport BulkheadTest::Run(const AdmittedModule& module, const RunRequest& request) {
  RunReport report = RunModule(*runtime_, module, request);
  CheckAfterRun(report);
  return report;
}

RunReport BulkheadTest::RunCancelledInExecute(const RunRequest& request) {
  return RunCancelledInExecute(EmptyModule(), request);
}

RunReport BulkheadTest::RunCancelledInExecute(const AdmittedModule& module, RunRequest request) {
  const CancelSource source = *CancelSource::Create();
  request.cancel = source.token();
  stages().At(Stage::kExecute, [&](const RunEvent&) { source.Cancel(); });
  return Run(module, request);
}

void BulkheadTest::CheckAfterRun(const RunReport& report) {
  guard_.NoteWorker(report.worker_pid);
  EXPECT_EQ(report.ledger.spawned, report.worker_pid != 0 ? 1U : 0U);
  if (report.outcome.code == OutcomeCode::kWorkerContainmentCleanup) {
    return;
  }
  EXPECT_EQ(report.ledger.spawned, report.ledger.reaped);
  EXPECT_LE(report.ledger.cancel_sent, 1U);
  if (report.worker_pid != 0) {
    const std::optional<ProcessView> worker = ViewProcess(report.worker_pid);
    EXPECT_FALSE(worker && worker->parent == getpid())
        << "the worker was not reaped before the report";
  }
  for (const auto& duration : report.durations) {
    EXPECT_GE(duration.count(), 0);
  }
  EXPECT_LE(report.diagnostic.size(), 4096U);
}

void BulkheadTest::ExpectDestinationUntouched() const {
  EXPECT_EQ(ReadFile(Destination()), "original");
  EXPECT_EQ(dir_.Entries(), std::vector<std::string>{"destination"});
}

void BulkheadTest::ExpectPublished(std::string_view content) const {
  EXPECT_EQ(ReadFile(Destination()), content);
  EXPECT_EQ(dir_.Entries(), std::vector<std::string>{"destination"});
}

void ExpectOutcome(const RunReport& report, std::string_view code_text) {
  EXPECT_EQ(report.outcome.CodeText(), code_text)
      << "diagnostic: " << report.diagnostic << "\nworker stderr: " << report.worker_stderr_tail
      << "\nworker exit: " << report.worker_exit << "\nstage: " << StageName(report.stage)
      << "\ncpu: " << report.cpu.count() << " us";
}

void ExpectOutcome(const RunReport& report, std::string_view code_text,
                   const LedgerColumn& column) {
  ExpectOutcome(report, code_text);
  EXPECT_EQ(ColumnOf(report.ledger), column);
}

}  // namespace bulkhead::test
