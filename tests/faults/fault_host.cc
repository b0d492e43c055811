// A host program whose system calls are made to fail, one in each start (faults_test.cc):
//   fault_host WORKER MODULE.wasm DESTINATION LEVEL [CACHE]
//
// Makes a Runtime, performs one run with an output file, ends the Runtime. Prints what came of it,
// one "name value" a line, and what it left behind as lines "fault ...".
#include <bulkhead/code_cache.h>
#include <bulkhead/run.h>

#include <cstdio>
#include <new>
#include <string>

#include "faults/window.h"
#include "support/leak_guard.h"

namespace bulkhead::test {
namespace {

// The lines so far: nothing may be written, nor memory be asked for, while calls are counted.
class Lines {
 public:
  Lines() { text_.reserve(kRoomBytes); }

  void Add(std::string_view name, std::string_view value) {
    text_.append(name).append(" ").append(value).append("\n");
  }

  void Print() const { std::fputs(text_.c_str(), stdout); }

 private:
  static constexpr std::size_t kRoomBytes = std::size_t{256} << 10;

  std::string text_;
};

struct Words {
  std::string worker;
  std::string module;
  std::string destination;
  std::string level;
  std::string cache;
};

RunRequest MakeRequest(const Words& words) {
  RunRequest request;
  request.worker.executable = words.worker;
  request.worker.sandbox = words.level == "none"     ? SandboxLevel::kNone
                           : words.level == "strict" ? SandboxLevel::kStrict
                                                     : SandboxLevel::kDefault;
  request.limits.deadline = std::chrono::seconds(20);  // a run that needs it has hung
  request.limits.scratch_bytes = 1 << 20;
  request.arguments = {"guest"};
  request.directories.push_back({"/", "/host", false});
  request.output = OutputGrant{words.destination};
  request.stdout_to = GuestStream::Capture(1024);
  return request;
}

void AddError(const Error& error, std::string_view stage, Lines& lines) {
  lines.Add("code", ErrorName(error.code));
  lines.Add("stage", stage);
  lines.Add("diagnostic", error.message);
}

void AddReport(const RunReport& report, Lines& lines) {
  lines.Add("code", report.outcome.CodeText());
  lines.Add("kind", OutcomeKindName(report.outcome.kind()));
  lines.Add("stage", StageName(report.stage));
  lines.Add("walls", std::to_string(report.containment.size()));
  lines.Add("diagnostic", report.diagnostic);
  lines.Add("published", report.output && report.output->published ? "yes" : "no");
}

// Of the code cache, which is no part of what a run promises.
void AddCacheProblem(const RunReport& report, Lines& lines) {
  if (!report.code.problem.empty()) {
    lines.Add("cache", report.code.problem);
  }
}

void RunOnce(const Words& words, Lines& lines) {
  RuntimeOptions options;
  if (!words.cache.empty()) {
    auto cache = CodeCache::Open({words.cache});
    if (!cache) {
      return AddError(cache.error(), "cache", lines);
    }
    options.code_cache = *std::move(cache);
  }
  auto runtime = Runtime::Create(options);
  if (!runtime) {
    return AddError(runtime.error(), "runtime", lines);
  }
  auto source = ModuleSource::FromFile(words.module, ModulePolicy::kModuleBytesCeiling);
  if (!source) {
    return AddError(source.error(), "read", lines);
  }
  auto module = std::move(*source).Admit({});
  if (!module) {
    return AddError(module.error(), "admit", lines);
  }
  const RunReport report = RunModule(**runtime, *module, MakeRequest(words));
  AddReport(report, lines);
  (*runtime)->Drain(std::chrono::seconds(10));  // what one failure held up is undone here
  AddCacheProblem(report, lines);
  for (const std::string& fault : LedgerFaults((*runtime)->snapshot())) {
    lines.Add("fault", fault);
  }
}

void Main(const Words& words) {
  const LeakGuard guard;
  Lines lines;
  MarkWindow(kWindowOpens);
  try {
    RunOnce(words, lines);
  } catch (const std::bad_alloc&) {
    lines.Add("code", "no-memory");
    lines.Add("stage", "host");
  }
  MarkWindow(kWindowCloses);
  for (const std::string& leak : guard.Leaks()) {
    lines.Add("fault", leak);
  }
  lines.Add("done", "");
  lines.Print();
}

}  // namespace
}  // namespace bulkhead::test

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::fputs("usage: fault_host WORKER MODULE.wasm DESTINATION LEVEL [CACHE]\n", stderr);
    return 2;
  }
  bulkhead::test::Main({argv[1], argv[2], argv[3], argv[4], argc == 6 ? argv[5] : ""});
}
