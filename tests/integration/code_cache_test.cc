// Runs with a cache of compiled code: table D, compile bombs, stops while a worker compiles, caches
// that are wrong, shared or gone.
#include <bulkhead/code_cache.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "codecache/store.h"
#include "oneshot/code.h"
#include "support/bulkhead_test.h"
#include "support/busy_guests.h"
#include "support/program.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string ExitsWith(int code) {
  return fmt::format(R"((module
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1)
      (func (export "_start") (call $exit (i32.const {})))))",
                     code);
}

std::string Repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

std::string Leb(std::size_t value) {
  std::string bytes;
  do {
    const auto low = static_cast<char>(value & 0x7f);
    value >>= 7;
    bytes += static_cast<char>(value != 0 ? low | 0x80 : low);
  } while (value != 0);
  return bytes;
}

// A module whose _start has these instructions; for nesting that no assembler survives.
std::vector<std::uint8_t> ModuleOf(const std::string& instructions) {
  const std::string body = std::string(1, '\0') + instructions + '\x0b';
  const std::string code = '\x01' + Leb(body.size()) + body;
  const std::string module =
      std::string("\0asm\x01\0\0\0", 8) + std::string("\x01\x04\x01\x60\0\0", 6) +
      std::string("\x03\x02\x01\0", 4) + std::string("\x07\x0a\x01\x06_start\0\0", 12) + '\x0a' +
      Leb(code.size()) + code;
  return {module.begin(), module.end()};
}

class CodeCache : public BulkheadTest {
 protected:
  void SetUp() override {
    if (!HaveWat2Wasm()) {
      GTEST_SKIP() << "no wat2wasm";
    }
    OpenCache();
  }

  void TearDown() override {
    cache_.reset();
    BulkheadTest::TearDown();
  }

  void OpenCache(std::uint64_t bytes_max = 1ULL << 30) {
    auto cache = bulkhead::CodeCache::Open({.directory = CachePath(), .bytes_max = bytes_max});
    ASSERT_TRUE(cache) << cache.error().message;
    cache_ = *std::move(cache);
    RuntimeOptions options;
    options.code_cache = cache_;
    RestartRuntime(options);
  }

  std::string CachePath() const { return dir().Path("cache"); }

  std::string EntryPath(const RunReport& report) const {
    return CachePath() + "/" + report.code.key;
  }

  // The names of entries, and of whatever else is there but the lock.
  std::vector<std::string> Entries() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(CachePath())) {
      if (entry.path().filename() != "lock") {
        names.push_back(entry.path().filename().string());
      }
    }
    return names;
  }

  // Without the check of other runs that there was at most one worker.
  RunReport RunCached(const AdmittedModule& module, const RunRequest& request) {
    RunReport report = RunModule(runtime(), module, request);
    guard().NoteWorker(report.worker_pid);
    EXPECT_EQ(report.ledger.spawned, report.ledger.reaped);
    return report;
  }

  void ExpectExit(const RunReport& report, int code, CodeSource source) {
    ExpectOutcome(report, "nonzero-exit");
    EXPECT_EQ(report.outcome.guest_exit, code);
    EXPECT_EQ(CodeSourceName(report.code.source), CodeSourceName(source)) << report.code.problem;
  }

  void ExpectCounts(const CodeCounts& expected) {
    const CodeCounts counts = runtime().snapshot().code;
    EXPECT_EQ(counts.hits, expected.hits);
    EXPECT_EQ(counts.misses, expected.misses);
    EXPECT_EQ(counts.corrupt, expected.corrupt);
    EXPECT_EQ(counts.stale, expected.stale);
    EXPECT_EQ(counts.stored, expected.stored);
  }

  static const LimitUse& LimitNamed(const RunReport& report, std::string_view name) {
    const auto found = std::find_if(report.limits.begin(), report.limits.end(),
                                    [&](const LimitUse& limit) { return limit.name == name; });
    EXPECT_NE(found, report.limits.end()) << name;
    return *found;
  }

  bulkhead::CodeCache& cache() { return *cache_; }

 private:
  std::shared_ptr<bulkhead::CodeCache> cache_;
};

codecache::Key KeyOfText(std::string_view hex) {
  codecache::Key key;
  for (std::size_t i = 0; i < key.digest.size(); ++i) {
    key.digest[i] =
        static_cast<std::uint8_t>(std::stoi(std::string(hex.substr(2 * i, 2)), nullptr, 16));
  }
  return key;
}

codecache::Code CodeFrom(std::string_view content) {
  codecache::Code code{UniqueFd(memfd_create("test", MFD_CLOEXEC)), 0, content.size()};
  EXPECT_EQ(pwrite(code.file.get(), content.data(), content.size(), 0),
            static_cast<ssize_t>(content.size()));
  return code;
}

TEST_F(CodeCache, FirstRunCompilesAndLaterOnesFindTheCode) {
  const AdmittedModule module = Admit(ExitsWith(7));
  const RunReport first = RunCached(module, GuestRequest());
  ExpectExit(first, 7, CodeSource::kCompiled);
  EXPECT_TRUE(first.code.stored);
  EXPECT_EQ(first.code.problem, "");
  EXPECT_EQ(first.ledger.spawned, 2U);
  EXPECT_GT(first.durations[static_cast<std::size_t>(Stage::kCompile)].count(), 0);
  EXPECT_EQ(Entries(), std::vector<std::string>{first.code.key});

  const RunReport second = RunCached(module, GuestRequest());
  ExpectExit(second, 7, CodeSource::kCache);
  EXPECT_FALSE(second.code.stored);
  EXPECT_EQ(second.code.key, first.code.key);
  EXPECT_EQ(second.ledger.spawned, 1U);
  ExpectCounts({.hits = 1, .misses = 1, .stored = 1});
  EXPECT_EQ(runtime().snapshot().active_runs, 0U);
}

TEST_F(CodeCache, WithoutOneTheRunCompiles) {
  RestartRuntime({});
  const RunReport report = RunCached(Admit(ExitsWith(7)), GuestRequest());
  ExpectExit(report, 7, CodeSource::kCompiledInRun);
  EXPECT_EQ(report.code.key, "");
  EXPECT_EQ(report.ledger.spawned, 1U);
}

// A program that is not of this build need not know of code.
TEST_F(CodeCache, ForeignWorkersAreNotAskedToCompile) {
  RunRequest request = RequestFor("completes_fast");
  request.worker.check_build_id = false;
  const RunReport report = RunCached(EmptyModule(), request);
  ExpectOutcome(report, "worker-completed", kClean);
  EXPECT_EQ(report.code.source, CodeSource::kCompiledInRun);
}

TEST_F(CodeCache, OutputAndStreamsAreTheRunsOwn) {
  RunRequest request = GuestRequest();
  request.output = RequestWithOutput("").output;
  const std::string text = ReadFile(std::string(BH_SOURCE_DIR) + "/tests/wasm/write_output.wat");
  std::string guest = text;
  guest.replace(guest.rfind("END"), 3, "");
  const AdmittedModule module = Admit(guest);
  for (const CodeSource source : {CodeSource::kCompiled, CodeSource::kCache}) {
    const RunReport report = RunCached(module, request);
    ExpectOutcome(report, "worker-completed");
    EXPECT_EQ(report.code.source, source);
    EXPECT_EQ(ReadFile(Destination()), "guest output");
  }
  // What the compiling worker wrote is no output of a guest that creates none.
  const RunReport none = RunCached(Admit(ExitsWith(0)), request);
  ExpectOutcome(none, "worker-output-commit");
  EXPECT_FALSE(none.output_created);
}

TEST_F(CodeCache, OneRunIsOnePermit) {
  RuntimeOptions options;
  options.active_runs_max = 1;
  options.code_cache = bulkhead::CodeCache::Open({.directory = CachePath()}).value();
  RestartRuntime(options);
  ExpectExit(RunCached(Admit(ExitsWith(7)), GuestRequest()), 7, CodeSource::kCompiled);
}

// Table D, row D3: whatever is wrong with an entry, the run does not notice.
TEST_F(CodeCache, EveryCorruptionOfAnEntryIsReplaced) {
  const AdmittedModule module = Admit(ExitsWith(7));
  const RunReport first = RunCached(module, GuestRequest());
  const std::string path = EntryPath(first);
  const std::string whole = ReadFile(path);
  const auto write = [&](std::string_view content) {
    dir().Write("cache/" + first.code.key, content);
  };
  const auto with_byte = [&](std::size_t at) {
    std::string content = whole;
    content[at] = static_cast<char>(content[at] ^ 1);
    return content;
  };
  const std::vector<std::function<void()>> corruptions = {
      [&] { write(with_byte(0)); },                        // magic
      [&] { write(with_byte(8)); },                        // form
      [&] { write(with_byte(12)); },                       // bytes of the header
      [&] { write(with_byte(16)); },                       // key
      [&] { write(with_byte(48)); },                       // bytes of the code
      [&] { write(with_byte(56)); },                       // digest
      [&] { write(with_byte(codecache::kHeaderBytes)); },  // code
      [&] { write(with_byte(whole.size() - 1)); },
      [&] { write(""); },
      [&] { write(whole.substr(0, whole.size() / 2)); },
      [&] { write(whole + "x"); },
      [&] { write(std::string(whole.size(), '\xA5')); },
      [&] {
        unlink(path.c_str());
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
      },
      [&] {
        unlink(path.c_str());
        EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
      },
      [&] {
        unlink(path.c_str());
        EXPECT_EQ(symlink("/etc/passwd", path.c_str()), 0);
      },
      [&] { chmod(path.c_str(), 0666); },
  };
  for (std::size_t i = 0; i < corruptions.size(); ++i) {
    SCOPED_TRACE(i);
    corruptions[i]();
    const RunReport report = RunCached(module, GuestRequest());
    ExpectExit(report, 7, CodeSource::kCompiled);
    EXPECT_TRUE(report.code.stored);
    EXPECT_NE(report.code.problem, "");
    EXPECT_EQ(ReadFile(path), whole);
  }
  ExpectExit(RunCached(module, GuestRequest()), 7, CodeSource::kCache);
  EXPECT_EQ(runtime().snapshot().code.corrupt, corruptions.size());
  EXPECT_EQ(Entries(), std::vector<std::string>{first.code.key});
}

TEST_F(CodeCache, CodeOfAnotherModuleIsNeverUsed) {
  const AdmittedModule seven = Admit(ExitsWith(7));
  const RunReport first = RunCached(seven, GuestRequest());
  const RunReport other = RunCached(Admit(ExitsWith(8)), GuestRequest());
  EXPECT_NE(first.code.key, other.code.key);
  ASSERT_EQ(rename(EntryPath(other).c_str(), EntryPath(first).c_str()), 0);
  ExpectExit(RunCached(seven, GuestRequest()), 7, CodeSource::kCompiled);
}

// Row D7: well-formed entries with code that is of other settings, of no engine, or cut.
TEST_F(CodeCache, CodeThatTheEngineRefusesIsReplaced) {
  const AdmittedModule module = Admit(ExitsWith(7));
  RunRequest metered = GuestRequest();
  metered.limits.fuel = 1'000'000;
  const std::string other =
      ReadFile(EntryPath(RunCached(module, metered))).substr(codecache::kHeaderBytes);
  const RunReport first = RunCached(module, GuestRequest());
  const codecache::Key key = KeyOfText(first.code.key);
  std::uint64_t stale = 0;
  for (const std::string& code : {other, std::string("no code"), other.substr(0, 1000)}) {
    ASSERT_TRUE(cache().impl().store.Put(key, CodeFrom(code)));
    const RunReport report = RunCached(module, GuestRequest());
    ExpectExit(report, 7, CodeSource::kCompiled);
    EXPECT_TRUE(report.code.stored);
    EXPECT_NE(report.code.problem, "");
    EXPECT_EQ(report.ledger.spawned, 3U);
    EXPECT_EQ(runtime().snapshot().code.stale, ++stale);
    ExpectExit(RunCached(module, GuestRequest()), 7, CodeSource::kCache);
  }
}

TEST_F(CodeCache, WhatChangesCodeHasAnEntryOfItsOwn) {
  const AdmittedModule module = Admit(ExitsWith(7));
  const auto expect = [&](CodeSource source, const std::function<void(RunRequest&)>& change) {
    RunRequest request = GuestRequest();
    change(request);
    ExpectExit(RunCached(module, request), 7, source);
  };
  expect(CodeSource::kCompiled, [](RunRequest&) {});
  expect(CodeSource::kCompiled, [](RunRequest& r) { r.limits.fuel = 1'000'000; });
  expect(CodeSource::kCompiled, [](RunRequest& r) { r.limits.cooperative_stop = false; });
  expect(CodeSource::kCache, [](RunRequest& r) { r.limits.fuel = 2'000'000; });
  expect(CodeSource::kCache, [](RunRequest& r) { r.limits.memory_bytes = 64U << 20; });
  expect(CodeSource::kCache, [](RunRequest& r) { r.limits.stack_bytes = 1U << 20; });
  expect(CodeSource::kCache, [](RunRequest& r) { r.arguments = {"other", "words"}; });
  expect(CodeSource::kCache, [](RunRequest& r) { r.limits.compile_memory_bytes = 256U << 20; });
  EXPECT_EQ(Entries().size(), 3U);
}

// G11 (e): code without fuel must not serve a run with fuel.
TEST_F(CodeCache, G11FuelIsNotLostInACache) {
  const AdmittedModule module = Admit(R"((module (func (export "_start")
      (local i32) (loop $again (br_if $again (i32.lt_u (local.tee 0 (i32.add (local.get 0)
      (i32.const 1))) (i32.const 1000000)))))))");
  ExpectOutcome(RunCached(module, GuestRequest()), "worker-completed");
  RunRequest metered = GuestRequest();
  metered.limits.fuel = 10'000;
  ExpectOutcome(RunCached(module, metered), "out-of-fuel");
  ExpectOutcome(RunCached(module, GuestRequest()), "worker-completed");
}

// G11 (a).
TEST_F(CodeCache, G11ParallelFirstRunsAllSucceed) {
  const AdmittedModule module = Admit(ExitsWith(7));
  std::vector<RunHandle> runs;
  for (int i = 0; i < 20; ++i) {
    runs.push_back(StartRun(runtime(), module, GuestRequest()).value());
  }
  for (RunHandle& run : runs) {
    const RunReport report = run.Wait();
    guard().NoteWorker(report.worker_pid);
    ExpectOutcome(report, "nonzero-exit");
    EXPECT_EQ(report.code.problem, "");
  }
  EXPECT_EQ(Entries().size(), 1U);
  ExpectExit(RunCached(module, GuestRequest()), 7, CodeSource::kCache);
  const CodeCounts counts = runtime().snapshot().code;
  EXPECT_EQ(counts.hits + counts.misses, 21U);
  EXPECT_EQ(counts.corrupt + counts.stale, 0U);
}

// Row D2: nothing stored is no reason to fail.
TEST_F(CodeCache, ACacheThatCannotStoreCostsOnlyTime) {
  const AdmittedModule module = Admit(ExitsWith(7));
  std::filesystem::remove_all(CachePath());
  RunReport report = RunCached(module, GuestRequest());
  ExpectExit(report, 7, CodeSource::kCompiled);
  EXPECT_FALSE(report.code.stored);
  EXPECT_NE(report.code.problem.find("No such file or directory"), std::string::npos)
      << report.code.problem;
  OpenCache(100);
  report = RunCached(module, GuestRequest());
  ExpectExit(report, 7, CodeSource::kCompiled);
  EXPECT_FALSE(report.code.stored);
  EXPECT_NE(report.code.problem.find("do not fit into a cache of 100 bytes"), std::string::npos);
  EXPECT_EQ(Entries().size(), 0U);
}

TEST_F(CodeCache, NothingOfTheModuleRunsWhileItIsCompiled) {
  const AdmittedModule module = Admit(R"((module
      (func $spin (loop $again (br $again))) (start $spin) (func (export "_start"))))");
  RunRequest request = GuestRequest();
  request.limits.deadline = seconds(2);
  const RunReport report = RunCached(module, request);
  ExpectOutcome(report, "deadline-exceeded");
  EXPECT_TRUE(report.code.stored);  // the worker that compiled came to its end
  int compiler = 0;
  for (const RunEvent& event : stages().events()) {
    if (event.stage == Stage::kCompile && compiler == 0) {
      compiler = event.worker_pid;
    }
    EXPECT_FALSE(event.stage == Stage::kExecute && event.worker_pid == compiler);
  }
  EXPECT_NE(compiler, report.worker_pid);
}

// A worker that was taken over while it compiled can only fail.
TEST_F(CodeCache, StartingWhileCompilingIsAProtocolFault) {
  const RunReport report = RunCached(EmptyModule(), RequestFor("honest_echo"));
  ExpectOutcome(report, "worker-protocol", kProtocolForced);
  EXPECT_EQ(Entries().size(), 0U);
}

TEST_F(CodeCache, ACompilerWithoutCodeIsAProtocolFault) {
  for (const std::string& content : {std::string(), std::string(101, 'x')}) {
    oneshot::Work work;
    work.product.Reset(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(write(work.product.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
    const auto code = oneshot::TakeCode(std::move(work), 100);
    ASSERT_FALSE(code);
    EXPECT_EQ(code.error().code, ErrorCode::kProtocol);
  }
}

TEST_F(CodeCache, WhatDoesNotValidateIsRefusedOnce) {
  // Admission does not look into bodies: this one adds with nothing on the stack.
  std::vector<std::uint8_t> bytes = AssembleText("(module (func (export \"_start\") (nop) (nop)))");
  const auto body = std::find(bytes.rbegin(), bytes.rend(), 0x01);
  ASSERT_NE(body, bytes.rend());
  *body = 0x6a;
  const AdmittedModule module = Admit(bytes);
  const RunReport report = RunCached(module, GuestRequest());
  ExpectOutcome(report, "module-refused/invalid-module", kClean);
  EXPECT_EQ(Entries().size(), 0U);
}

TEST_F(CodeCache, CancelWhileCompiling) {
  const AdmittedModule module = Admit(NestedLoops(300, 300));
  const CancelSource source = *CancelSource::Create();
  RunRequest request = GuestRequest();
  request.output = RequestWithOutput("").output;
  request.cancel = source.token();
  stages().At(Stage::kCompile, [&](const RunEvent&) { source.Cancel(); });
  const RunReport report = RunCached(module, request);
  ExpectOutcome(report, "cancelled", kPoliteStop);
  EXPECT_EQ(report.stop, StopCause::kCancelled);
  EXPECT_EQ(ReadFile(Destination()), "original");
  EXPECT_EQ(Entries().size(), 0U);
}

TEST_F(CodeCache, ForceWhileCompiling) {
  const AdmittedModule module = Admit(NestedLoops(300, 300));
  const CancelSource source = *CancelSource::Create();
  RunRequest request = GuestRequest();
  request.force = source.token();
  stages().At(Stage::kCompile, [&](const RunEvent&) { source.Cancel(); });
  ExpectOutcome(RunCached(module, request), "forced-containment-cancelled", kForcedAtOnce);
}

TEST_F(CodeCache, DeadlineWhileCompiling) {
  RunRequest request = GuestRequest();
  request.limits.deadline = milliseconds(700);
  const RunReport report = RunCached(Admit(NestedLoops(300, 300)), request);
  ExpectOutcome(report, "deadline-exceeded");
  EXPECT_EQ(Entries().size(), 0U);
}

TEST_F(CodeCache, CompileTimeIsEnforcedWithAndWithoutACache) {
  const AdmittedModule module = Admit(NestedLoops(300, 300));
  RunRequest request = GuestRequest();
  request.limits.compile_time = milliseconds(400);
  for (const bool cached : {true, false}) {
    SCOPED_TRACE(cached);
    if (!cached) {
      RestartRuntime({});
    }
    const RunReport report = RunCached(module, request);
    ExpectOutcome(report, "compile-limit", kForcedAtOnce);
    EXPECT_EQ(report.stage, Stage::kCompile);
    EXPECT_EQ(report.stop, StopCause::kNone);
    EXPECT_TRUE(LimitNamed(report, "compile-time-ms").reached);
    EXPECT_EQ(LimitNamed(report, "compile-time-ms").cap, 400U);
    EXPECT_GE(LimitNamed(report, "compile-time-ms").used, 400U);
    EXPECT_FALSE(LimitNamed(report, "compile-memory-bytes").reached);
    EXPECT_EQ(report.diagnostic, "compiling the module took longer than it may");
  }
  EXPECT_EQ(Entries().size(), 0U);
}

TEST_F(CodeCache, CompileMemoryIsEnforced) {
  const std::string function = fmt::format("(func (param i32) (result i32) (local.get 0) {})",
                                           Repeated("(i32.const 3) (i32.mul)", 2000));
  const AdmittedModule module =
      Admit(fmt::format("(module {} (func (export \"_start\")))", Repeated(function, 150)));
  RunRequest request = GuestRequest();
  request.limits.compile_memory_bytes = 24U << 20;
  const RunReport report = RunCached(module, request);
  ExpectOutcome(report, "compile-limit");
  EXPECT_TRUE(LimitNamed(report, "compile-memory-bytes").reached);
  EXPECT_FALSE(LimitNamed(report, "compile-time-ms").reached);
  EXPECT_EQ(Entries().size(), 0U);
}

TEST_F(CodeCache, CpuTimeIsOneBudgetForBothWorkers) {
  RunRequest request = GuestRequest();
  request.limits.cpu_time = seconds(1);
  ExpectOutcome(RunCached(Admit(NestedLoops(300, 300)), request), "cpu-limit");
  request.limits.cpu_time = seconds(5);
  supervise::WorkerStart start;
  oneshot::LimitCpu(request, milliseconds(2500), start);
  EXPECT_EQ(start.hello.cpu_seconds, 3U);
  oneshot::LimitCpu(request, seconds(9), start);
  EXPECT_EQ(start.hello.cpu_seconds, 1U);
}

struct Bomb {
  const char* name;
  std::vector<std::uint8_t> module;
};

std::vector<Bomb> Bombs() {
  const auto text = [](std::string_view body, std::string_view before = {}) {
    return AssembleText(fmt::format("(module {} (func (export \"_start\") {}))", before, body));
  };
  std::string targets;
  for (int i = 0; i < 60'000; ++i) {
    targets += fmt::format(" {}", i % 40);
  }
  std::string functions;
  std::string calls;
  for (int i = 0; i < 2000; ++i) {
    functions += fmt::format("(func $f{0} (param{1}) (result i32) (i32.const {0}))", i,
                             Repeated(" i32", i % 20));
    calls += fmt::format("(drop (call $f{} {}))", i, Repeated("(i32.const 1)", i % 20));
  }
  return {
      {"nested loops over many variables", AssembleText(NestedLoops(300, 300))},
      {"nested blocks", ModuleOf(Repeated("\x02\x40", 100'000) + Repeated("\x0b", 100'000))},
      {"nested loops", ModuleOf(Repeated("\x03\x40", 50'000) + Repeated("\x0b", 50'000))},
      {"nested ifs", ModuleOf(Repeated("\x41\x01\x04\x40", 30'000) + Repeated("\x0b", 30'000))},
      {"a huge br_table",
       text(Repeated("(block ", 40) + fmt::format("(br_table{} (i32.const 7))", targets) +
            Repeated(")", 40))},
      {"many locals", text(fmt::format("(local{})", Repeated(" i64", 49'000)))},
      {"a long function", text(Repeated("(drop (i32.mul (i32.const 7) (i32.const 9)))", 60'000))},
      {"many functions",
       text("", Repeated("(func (param i32) (result i32) (local.get 0))", 60'000))},
      {"many signatures", text(calls, functions)},
      {"a deep stack", ModuleOf(Repeated("\x41\x01", 60'000) + Repeated("\x6a", 59'999) + "\x1a")},
      {"many globals", text("", Repeated("(global (mut i64) (i64.const 1))", 50'000))},
      {"float conversions",
       text("(local f64)" +
            Repeated("(local.set 0 (f64.sqrt (f64.convert_i64_s (i64.trunc_sat_f64_u "
                     "(local.get 0)))))",
                     15'000))},
  };
}

// R8: compile, or end as compile-limit; in any case in time, and nothing is left.
TEST_F(CodeCache, CompileBombsEndWithinTheirLimits) {
  RunRequest request = GuestRequest();
  request.limits.compile_time = seconds(2);
  request.limits.compile_memory_bytes = 256U << 20;
  int limited = 0;
  for (const Bomb& bomb : Bombs()) {
    SCOPED_TRACE(bomb.name);
    auto source = ModuleSource::FromBytes(bomb.module, ModulePolicy::kModuleBytesCeiling);
    auto module = (*std::move(source)).Admit({});
    ASSERT_TRUE(module) << module.error().message;
    const RunReport report = RunCached(*module, request);
    const std::string code = report.outcome.CodeText();
    limited += code == "compile-limit" ? 1 : 0;
    EXPECT_TRUE(code == "compile-limit" || code == "worker-completed")
        << code << ": " << report.diagnostic;
    EXPECT_LT(report.elapsed, seconds(30));
    EXPECT_EQ(report.code.stored, code == "worker-completed");
  }
  EXPECT_GE(limited, 1);  // the first one; how many more depends on the machine
  // The parent is as before.
  ExpectExit(RunCached(Admit(ExitsWith(7)), GuestRequest()), 7, CodeSource::kCompiled);
}

}  // namespace
}  // namespace bulkhead::test
