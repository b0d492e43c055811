// No sin: reports the terminal its name says and exits 0. Outcome: table B's mapping of it.
#include <functional>
#include <map>

#include "support/worker_end.h"

namespace bulkhead::test {
namespace {

using wire::Terminal;

Terminal Exited() {
  Terminal terminal = Completed();
  terminal.completed_as = Terminal::CompletedAs::kExited;
  return terminal;
}

Terminal WithRejections(Terminal::CompletedAs as) {
  Terminal terminal = Completed();
  terminal.completed_as = as;
  terminal.rejections = {1, 2, 3, 4};
  return terminal;
}

Terminal Trapped() {
  Terminal terminal = OfKind(Terminal::Kind::kTrapped);
  terminal.diagnostic = "the guest trapped";
  terminal.trap =
      Terminal::Trap{"unreachable", "wasm trap: unreachable", 5, {"0x10 inner", "0x20 outer"}};
  return terminal;
}

Terminal WithStatus(Terminal::Kind kind, std::int32_t status) {
  Terminal terminal = OfKind(kind);
  terminal.status = status;
  return terminal;
}

Terminal Refused() {
  Terminal terminal = OfKind(Terminal::Kind::kModuleRefused);
  terminal.reason = "link-failed";
  terminal.diagnostic = "unknown import";
  return terminal;
}

Terminal Limited(Terminal::Limit limit) {
  Terminal terminal = OfKind(Terminal::Kind::kLimitReached);
  terminal.limit = limit;
  return terminal;
}

const std::map<std::string_view, Terminal> kReports = {
    {"reports_started", Completed()},
    {"reports_exited", Exited()},
    {"reports_started_rejections",
     WithRejections(Terminal::CompletedAs::kStartedWithThreadRejections)},
    {"reports_exited_rejections",
     WithRejections(Terminal::CompletedAs::kExitedWithThreadRejections)},
    {"reports_cancelled", OfKind(Terminal::Kind::kCancelled)},
    {"reports_deadline", OfKind(Terminal::Kind::kDeadlineExceeded)},
    {"reports_out_of_fuel", OfKind(Terminal::Kind::kOutOfFuel)},
    {"reports_trapped", Trapped()},
    {"reports_nonzero_exit", WithStatus(Terminal::Kind::kNonzeroExit, 137)},
    {"reports_child_exit", WithStatus(Terminal::Kind::kChildFailure, -9)},
    {"reports_child_failure", OfKind(Terminal::Kind::kChildFailure)},
    {"reports_protocol_failure", OfKind(Terminal::Kind::kProtocolFailure)},
    {"reports_worker_failure", OfKind(Terminal::Kind::kWorkerFailure)},
    {"reports_forced_containment", OfKind(Terminal::Kind::kForcedContainment)},
    {"reports_module_refused", Refused()},
    {"reports_memory_limit", Limited(Terminal::Limit::kMemory)},
    {"reports_compile_limit", Limited(Terminal::Limit::kCompile)},
    {"reports_output_limit", Limited(Terminal::Limit::kOutput)},
};

}  // namespace
}  // namespace bulkhead::test

int main(int /*argc*/, char** argv) {
  const auto report = bulkhead::test::kReports.find(bulkhead::test::VariantName(argv[0]));
  if (report == bulkhead::test::kReports.end()) {
    bulkhead::test::Die("unknown variant");
  }
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  if (worker.output().valid()) {
    bulkhead::test::WriteFully(worker.output(), "partial output");
  }
  worker.Send(report->second);
  return 0;
}
