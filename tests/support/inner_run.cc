// A host program that holds a worker, for tests that kill one of the two:
//   inner_run MODE WORKER DIRECTORY [SKETCH.wasm]
//
// Prints one line per stage ("stage <name> <worker pid> <worker start time>"), then does what MODE
// says:
//   finish        waits for the end; prints "code <text>", the ledger, and what is left behind
//   finish-soon   the same with a deadline of a second, and without namespaces
//   exit          waits for a line on stdin, then exits at once with 0 while the run is active
//   ended-thread  starts the run on a thread that ends at once, waits for a line, then cancels and
//   goes on as "finish"
#include <bulkhead/run.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "support/bulkhead_test.h"
#include "support/leak_guard.h"
#include "support/proc_view.h"

namespace bulkhead::test {
namespace {

void Say(const std::string& line) {
  const std::string bytes = line + "\n";
  if (write(STDOUT_FILENO, bytes.data(), bytes.size()) < 0) {
    _exit(1);
  }
}

class StagePrinter final : public Observer {
 public:
  void OnStage(const RunEvent& event) override {
    const std::optional<ProcessView> worker = ViewProcess(event.worker_pid);
    Say("stage " + std::string(StageName(event.stage)) + " " + std::to_string(event.worker_pid) +
        " " + std::to_string(worker ? worker->start_time : 0));
  }
};

RunRequest MakeRequest(const std::string& worker, const std::string& directory) {
  RunRequest request;
  request.worker.executable = worker;
  request.worker.grace = std::chrono::milliseconds(200);
  request.limits.deadline = std::chrono::seconds(30);
  request.directories.push_back({directory, "/alive", true});
  return request;
}

void Report(const RunReport& report, std::unique_ptr<Runtime> runtime, const LeakGuard& guard) {
  Say("code " + report.outcome.CodeText());
  std::string column = "ledger";
  for (const std::uint64_t count : ColumnOf(report.ledger)) {
    column += " " + std::to_string(count);
  }
  Say(column);
  for (const std::string& fault : LedgerFaults(runtime->snapshot())) {
    Say("fault " + fault);
  }
  runtime.reset();
  for (const std::string& leak : guard.Leaks()) {
    Say("fault " + leak);
  }
  Say("done");
}

AdmittedModule Load(const std::string& path) {
  return ModuleSource::FromFile(path, ModulePolicy::kModuleBytesCeiling).value().Admit({}).value();
}

int Main(const std::string& mode, const AdmittedModule& module, RunRequest request) {
  if (mode == "finish-soon") {
    request.limits.deadline = std::chrono::seconds(1);
    request.worker.sandbox = SandboxLevel::kNone;  // from a pid namespace no worker sees its host
  }
  const LeakGuard guard;
  StagePrinter printer;
  RuntimeOptions options;
  options.observer = &printer;
  std::unique_ptr<Runtime> runtime = Runtime::Create(options).value();
  std::string line;
  if (mode == "finish" || mode == "finish-soon") {
    const RunReport report = RunModule(*runtime, module, request);
    Report(report, std::move(runtime), guard);
    return 0;
  }
  std::optional<RunHandle> run;
  std::thread([&] { run = StartRun(*runtime, module, request).value(); }).join();
  std::getline(std::cin, line);
  if (mode == "exit") {
    _exit(0);
  }
  run->Cancel();
  const RunReport report = run->Wait();
  run.reset();
  Report(report, std::move(runtime), guard);
  return 0;
}

}  // namespace
}  // namespace bulkhead::test

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fputs("usage: inner_run MODE WORKER DIRECTORY [SKETCH.wasm]\n", stderr);
    return 2;
  }
  bulkhead::RunRequest request = bulkhead::test::MakeRequest(argv[2], argv[3]);
  if (argc == 5) {
    request.directories.clear();  // a sketch has none
  }
  const bulkhead::AdmittedModule module =
      argc == 5 ? bulkhead::test::Load(argv[4]) : bulkhead::test::EmptyModule();
  return bulkhead::test::Main(argv[1], module, request);
}
