#include "cli/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/option_table.h"
#include "cli/units.h"

namespace bulkhead::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Words = std::vector<std::string_view>;

RunOptions ParseRun(Words words) {
  words.insert(words.begin(), "run");
  auto command = ParseOptions(words);
  EXPECT_TRUE(command) << command.error().message;
  return command ? std::get<RunOptions>(*std::move(command)) : RunOptions{};
}

std::string Refusal(const Words& words) {
  const auto command = ParseOptions(words);
  EXPECT_FALSE(command);
  if (command) {
    return {};
  }
  EXPECT_EQ(command.error().code, ErrorCode::kInvalidArgument);
  return command.error().message;
}

TEST(Options, DefaultsAreTheLibrarys) {
  const RunOptions options = ParseRun({"m.wasm"});
  EXPECT_EQ(options.module_path, "m.wasm");
  EXPECT_EQ(options.limits.deadline, seconds(30));
  EXPECT_EQ(options.grace, seconds(2));
  EXPECT_EQ(options.limits.memory_bytes, 1ULL << 30U);
  EXPECT_EQ(options.limits.compile_memory_bytes, 2ULL << 30U);
  EXPECT_EQ(options.limits.compile_time, seconds(60));
  EXPECT_EQ(options.cache.kind, CacheChoice::Kind::kDefault);
  EXPECT_EQ(options.limits.stack_bytes, 2ULL << 20U);
  EXPECT_FALSE(options.limits.fuel);
  EXPECT_FALSE(options.limits.cpu_time);
  EXPECT_TRUE(options.limits.cooperative_stop);
  EXPECT_EQ(options.sandbox, SandboxLevel::kDefault);
  EXPECT_TRUE(options.required_mechanisms.empty());
  EXPECT_FALSE(options.output);
  EXPECT_EQ(options.stdin_kind, RunOptions::Stdin::kEmpty);
  EXPECT_TRUE(options.limits.Validate());
}

TEST(Options, Repetition) {
  EXPECT_FALSE(ParseRun({"m.wasm"}).repeated);
  const RunOptions options = ParseRun({"m.wasm", "--repeat", "1_000", "--jobs", "4"});
  EXPECT_TRUE(options.repeated);
  EXPECT_EQ(options.repeat, 1000U);
  EXPECT_EQ(options.jobs, 4U);
}

// The help names the defaults as text; giving that text must change nothing.
TEST(Options, DefaultsInTheTableAreTheRealOnes) {
  const RunOptions plain = ParseRun({"m.wasm"});
  for (const OptionSpec& option : FindCommand("run")->options) {
    if (option.fallback.empty()) {
      continue;
    }
    Words words{"m.wasm", option.name, option.fallback};
    if (option.name == "--output-limit") {
      words.insert(words.end(), {"--output", "o"});
    } else if (option.name == "--jobs") {
      words.insert(words.end(), {"--repeat", "2"});
    }
    const RunOptions given = ParseRun(words);
    EXPECT_EQ(given.limits.deadline, plain.limits.deadline) << option.name;
    EXPECT_EQ(given.grace, plain.grace) << option.name;
    EXPECT_EQ(given.limits.memory_bytes, plain.limits.memory_bytes) << option.name;
    EXPECT_EQ(given.limits.compile_memory_bytes, plain.limits.compile_memory_bytes) << option.name;
    EXPECT_EQ(given.limits.stack_bytes, plain.limits.stack_bytes) << option.name;
    EXPECT_EQ(given.limits.cooperative_stop, plain.limits.cooperative_stop) << option.name;
    EXPECT_EQ(given.profile, plain.profile) << option.name;
    EXPECT_EQ(given.sandbox, plain.sandbox) << option.name;
    EXPECT_EQ(given.jobs, plain.jobs) << option.name;
    EXPECT_EQ(given.stdin_kind, plain.stdin_kind) << option.name;
    if (given.output) {
      EXPECT_EQ(given.output->bytes_max, OutputGrant{}.bytes_max);
    }
  }
}

// tidy: decision-table
TEST(Options, EveryOptionIsUnderstood) {
  const RunOptions options = ParseRun({"--deadline=5s",
                                       "--grace",
                                       "200ms",
                                       "--cpu-time",
                                       "3s",
                                       "--fuel",
                                       "1e9",
                                       "--memory",
                                       "256MiB",
                                       "--compile-memory",
                                       "512MiB",
                                       "--stack",
                                       "1MiB",
                                       "--stdout-limit",
                                       "1MB",
                                       "--threads",
                                       "4",
                                       "-o",
                                       "out/x.png",
                                       "--output-limit",
                                       "10MiB",
                                       "--no-clobber",
                                       "m.wasm",
                                       "--dir",
                                       "data",
                                       "--dir-rw=/srv/a::/work",
                                       "--scratch",
                                       "64KiB",
                                       "--env",
                                       "A=1",
                                       "--env",
                                       "B=",
                                       "--stdin",
                                       "-",
                                       "--profile",
                                       "wasi",
                                       "--sandbox",
                                       "none",
                                       "--require",
                                       "landlock",
                                       "--require",
                                       "empty-root",
                                       "--stop-mode",
                                       "kill",
                                       "--report",
                                       "r.json",
                                       "--status-fd",
                                       "7",
                                       "-q",
                                       "--",
                                       "--deadline",
                                       "x y",
                                       "--"});
  EXPECT_EQ(options.limits.deadline, seconds(5));
  EXPECT_EQ(options.grace, milliseconds(200));
  EXPECT_EQ(options.limits.cpu_time, seconds(3));
  EXPECT_EQ(options.limits.fuel, 1'000'000'000U);
  EXPECT_EQ(options.limits.memory_bytes, 256ULL << 20U);
  EXPECT_EQ(options.limits.compile_memory_bytes, 512ULL << 20U);
  EXPECT_EQ(options.limits.stack_bytes, 1ULL << 20U);
  EXPECT_EQ(options.limits.threads_max, 4U);
  EXPECT_EQ(options.limits.stdout_bytes_max, 1'000'000U);
  ASSERT_TRUE(options.output);
  EXPECT_EQ(options.output->path, "out/x.png");
  EXPECT_EQ(options.output->bytes_max, 10ULL << 20U);
  EXPECT_TRUE(options.output->no_clobber);
  EXPECT_EQ(options.module_path, "m.wasm");
  ASSERT_EQ(options.directories.size(), 2U);
  EXPECT_EQ(options.directories[0].host_path, "data");
  EXPECT_EQ(options.directories[0].guest_path, "/data");
  EXPECT_FALSE(options.directories[0].writable);
  EXPECT_EQ(options.directories[1].host_path, "/srv/a");
  EXPECT_EQ(options.directories[1].guest_path, "/work");
  EXPECT_TRUE(options.directories[1].writable);
  EXPECT_EQ(options.limits.scratch_bytes, 65536U);
  EXPECT_EQ(options.environment, (std::vector<std::string>{"A=1", "B="}));
  EXPECT_EQ(options.stdin_kind, RunOptions::Stdin::kInherited);
  EXPECT_EQ(options.profile, Profile::kWasi);
  EXPECT_EQ(options.sandbox, SandboxLevel::kNone);
  EXPECT_EQ(options.required_mechanisms, (std::vector<std::string>{"landlock", "empty-root"}));
  EXPECT_FALSE(options.limits.cooperative_stop);
  EXPECT_EQ(options.report_path, "r.json");
  EXPECT_EQ(options.status_fd, 7);
  EXPECT_TRUE(options.quiet);
  EXPECT_EQ(options.guest_arguments, (std::vector<std::string>{"--deadline", "x y", "--"}));
}

TEST(Options, GuestPathOfADirectory) {
  const struct {
    std::string_view value;
    std::string_view host;
    std::string_view guest;
  } rows[] = {{"data", "data", "/data"},
              {"./data/", "./data/", "/data"},
              {".", ".", "/"},
              {"/srv//x/", "/srv//x/", "/srv/x"},
              {"a::/b", "a", "/b"},
              {"a::b::/c", "a::b", "/c"},
              {"../up::/up", "../up", "/up"},
              {"a/./b", "a/./b", "/a/b"}};

  for (const auto& row : rows) {
    const RunOptions options = ParseRun({"m.wasm", "--dir", row.value});
    ASSERT_EQ(options.directories.size(), 1U) << row.value;
    EXPECT_EQ(options.directories[0].host_path, row.host);
    EXPECT_EQ(options.directories[0].guest_path, row.guest);
  }
}

TEST(Options, ValuesPassThroughUnchanged) {
  const std::string odd = "K=[a,b] {}\n\"'\\ \xff";
  const std::string large = "L=" + std::string(200'000, 'x');
  const RunOptions options = ParseRun({"m.wasm", "--env", odd, "--env", large, "--env=M={}",
                                       "--env", "N=[x]", "--", odd, "", "{}", "[1,2]"});
  EXPECT_EQ(options.environment, (std::vector<std::string>{odd, large, "M={}", "N=[x]"}));
  EXPECT_EQ(options.guest_arguments, (std::vector<std::string>{odd, "", "{}", "[1,2]"}));
  EXPECT_EQ(ParseRun({"-q", "--stdin", "empty", "[m].wasm"}).module_path, "[m].wasm");
  EXPECT_EQ(ParseRun({"{}"}).module_path, "{}");
}

TEST(Options, OtherCommands) {
  EXPECT_TRUE(std::get<InspectOptions>(*ParseOptions(Words{"inspect", "m.wasm", "--json"})).json);
  EXPECT_EQ(std::get<InspectOptions>(*ParseOptions(Words{"inspect", "m.wasm"})).module_path,
            "m.wasm");
  EXPECT_FALSE(std::get<DoctorOptions>(*ParseOptions(Words{"doctor"})).json);
  EXPECT_EQ(std::get<AuditOptions>(*ParseOptions(Words{"audit", "4711"})).pid, 4711);
  EXPECT_TRUE(std::get<AuditOptions>(*ParseOptions(Words{"audit", "--json", "1"})).json);
  EXPECT_TRUE(std::get<VersionOptions>(*ParseOptions(Words{"version", "--json"})).json);
  EXPECT_FALSE(std::get<VersionOptions>(*ParseOptions(Words{"--version"})).json);
  EXPECT_EQ(std::get<HelpOptions>(*ParseOptions(Words{"help"})).command, nullptr);
  EXPECT_EQ(std::get<HelpOptions>(*ParseOptions(Words{"--help"})).command, nullptr);
  EXPECT_EQ(std::get<HelpOptions>(*ParseOptions(Words{"help", "run"})).command->name, "run");
  EXPECT_EQ(std::get<HelpOptions>(*ParseOptions(Words{"run", "-h"})).command->name, "run");
  EXPECT_EQ(std::get<HelpOptions>(*ParseOptions(Words{"run", "--help", "--bogus"})).command->name,
            "run");
}

// tidy: decision-table
TEST(Options, BadInputIsOneSentence) {
  const struct {
    Words words;
    std::string_view message;
  } rows[] = {
      {{}, "no command given; bulkhead help lists the commands"},
      {{"rum", "m.wasm"}, "unknown command 'rum'; did you mean run?"},
      {{"call", "x"}, "unknown command 'call'"},
      {{"stream"}, "unknown command 'stream'"},
      {{"pool"}, "unknown command 'pool'"},
      {{"lean"}, "unknown command 'lean'"},
      {{"audit"}, "audit needs a process: bulkhead audit [OPTION]... PID"},
      {{"audit", "x"}, "'x' is no process id"},
      {{"audit", "0"}, "'0' is no process id"},
      {{"audit", "12x"}, "'12x' is no process id"},
      {{"audit", "4294967297"}, "'4294967297' is no process id"},
      {{"audit", "1", "2"}, "unexpected argument '2'"},
      {{"--frob"}, "unknown option '--frob'"},
      {{"help", "rnu"}, "unknown command 'rnu'; did you mean run?"},
      {{"run"}, "run needs a module: bulkhead run [OPTION]... MODULE [-- ARG]..."},
      {{"run", "--", "m.wasm"}, "run needs a module: bulkhead run [OPTION]... MODULE [-- ARG]..."},
      {{"run", "m.wasm", "x"}, "unexpected argument 'x'; arguments of the guest go after --"},
      {{"inspect", "m.wasm", "x"}, "unexpected argument 'x'"},
      {{"doctor", "x"}, "unexpected argument 'x'"},
      {{"doctor", "--", "x"}, "doctor takes no arguments after --"},
      {{"run", "m.wasm", "--deadlin", "5s"},
       "unknown option '--deadlin' of run; did you mean --deadline?"},
      {{"run", "m.wasm", "--repeet=5"}, "unknown option '--repeet' of run; did you mean --repeat?"},
      {{"run", "m.wasm", "--repeat", "0"}, "--repeat: '0' is not at least 1"},
      {{"run", "m.wasm", "--repeat", "2", "--output", "x"},
       "--repeat: with --output each run would replace the other's file"},
      {{"run", "m.wasm", "--repeat", "2", "--stdin", "-"},
       "--repeat: standard input can be read once only; give a file or empty"},
      {{"run", "m.wasm", "--jobs", "2"}, "--jobs: needs --repeat"},
      {{"run", "m.wasm", "--repeat", "2", "--jobs", "257"}, "--jobs: '257' is outside 1 to 256"},
      {{"run", "m.wasm", "--threads", "0"}, "--threads: '0' is outside 1 to 1024"},
      {{"run", "m.wasm", "-x"}, "unknown option '-x' of run"},
      {{"run", "m.wasm", "--deadline"}, "--deadline needs a value: --deadline DUR"},
      {{"run", "m.wasm", "--deadline="}, "--deadline needs a value: --deadline DUR"},
      {{"run", "m.wasm", "-o"}, "--output needs a value: --output PATH"},
      {{"run", "m.wasm", "--quiet=yes"}, "--quiet takes no value"},
      {{"run", "m.wasm", "--deadline", "1s", "--deadline", "2s"},
       "--deadline is given more than once"},
      {{"run", "m.wasm", "--deadline", "5"},
       "--deadline: '5' has no unit; write a duration such as 500ms, 1.5s, 2m or 1h"},
      {{"run", "m.wasm", "--deadline", "0s"}, "--deadline: '0s' is not more than 0"},
      {{"run", "m.wasm", "--grace", "61s"}, "--grace: '61s' is more than 60 s"},
      {{"run", "m.wasm", "--memory", "1024"},
       "--memory: '1024' has no unit; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {{"run", "m.wasm", "--memory", "1KiB"}, "--memory: '1KiB' is outside 64 KiB to 1.0 TiB"},
      {{"run", "m.wasm", "--compile-memory", "1MiB"},
       "--compile-memory: '1MiB' is outside 16 MiB to 1.0 TiB"},
      {{"run", "m.wasm", "--stack", "1GiB"}, "--stack: '1GiB' is outside 64 KiB to 64 MiB"},
      {{"run", "m.wasm", "--scratch", "0B"}, "--scratch: '0B' is outside 1 byte to 1.0 TiB"},
      {{"run", "m.wasm", "--fuel", "0"}, "--fuel: '0' is not at least 1"},
      {{"run", "m.wasm", "--fuel", "many"},
       "--fuel: 'many' is not a whole number; write a whole number such as 1000, 1_000_000 or 1e9"},
      {{"run", "m.wasm", "--sandbox", "off"}, "--sandbox: 'off' is none of: strict, default, none"},
      {{"run", "m.wasm", "--require", "magic"},
       "--require: 'magic' is none of: pid-namespace, mount-namespace, network-namespace, "
       "ipc-namespace, uts-namespace, rlimits, no-new-privs, empty-root, landlock, not-dumpable, "
       "seccomp, user-namespace, unprivileged-user, no-capabilities, cgroup-memory, "
       "cgroup-pids"},
      {{"run", "m.wasm", "--profile", "wasm"},
       "--profile: 'wasm' is none of: auto, wasi, wasi-threads, sketch"},
      {{"run", "m.wasm", "--stop-mode", ""}, "--stop-mode: '' is none of: cooperative, kill"},
      {{"run", "m.wasm", "--no-clobber"}, "--no-clobber: has no meaning without --output"},
      {{"run", "m.wasm", "--output-limit", "1MiB"},
       "--output-limit: has no meaning without --output"},
      {{"run", "m.wasm", "--dir", "::/x"}, "--dir: the host's directory is empty"},
      {{"run", "m.wasm", "--dir", "x::"}, "--dir: the guest's path is empty"},
      {{"run", "m.wasm", "--dir-rw", "../x"},
       "--dir-rw: '../x' leads upwards; name the guest's path as well: HOST::GUEST"},
      {{"run", "m.wasm", "--env", "A"}, "--env: 'A' is not of the form K=V"},
      {{"run", "m.wasm", "--env", "=1"}, "--env: '=1' is not of the form K=V"},
      {{"run", "m.wasm", "--status-fd", "x"}, "--status-fd: 'x' is not a descriptor number"},
      {{"run", "m.wasm", "--status-fd", "99999999999"},
       "--status-fd: '99999999999' is not a descriptor number"},
      {{"run", "m.wasm", "--cache", ""}, "--cache: the path is empty"},
      {{"run", "m.wasm", "--compile-time", "0s"}, "--compile-time: '0s' is not more than 0"},
      {{"cache"}, "cache needs one of: stat, prune, verify"},
      {{"cache", "clear"}, "cache: 'clear' is none of: stat, prune, verify"},
      {{"cache", "stat", "verify"}, "unexpected argument 'verify'"},
      {{"cache", "stat", "--size", "1MiB"}, "--size has no meaning but for prune"},
      {{"cache", "prune", "--size", "1"},
       "--size: '1' has no unit; write a size such as 512B, 64KiB, 256MiB or 2GB"},
      {{"cache", "verify", "--cache", "off"},
       "--cache: there is nothing to look after in 'off'; name a directory"},
      {{"run", "m.wasm", "--report", ""}, "--report: the path is empty"},
      {{"run", "m.wasm", "--output", "x", "--report", "x"}, "--report: the same file as --output"},
  };

  for (const auto& row : rows) {
    EXPECT_EQ(Refusal(row.words), row.message);
  }
}

TEST(Options, TheCacheIsTheDefaultOneANamedOneOrNone) {
  EXPECT_EQ(ParseRun({"m.wasm", "--cache", "off"}).cache.kind, CacheChoice::Kind::kOff);
  const CacheChoice named = ParseRun({"m.wasm", "--cache", "./off"}).cache;
  EXPECT_EQ(named.kind, CacheChoice::Kind::kDirectory);
  EXPECT_EQ(named.directory, "./off");
  const auto command =
      ParseOptions(Words{"cache", "prune", "--cache", "/c", "--size", "2MiB", "--json"});
  ASSERT_TRUE(command) << command.error().message;
  const auto& cache = std::get<CacheOptions>(*command);
  EXPECT_EQ(cache.action, CacheOptions::Action::kPrune);
  EXPECT_EQ(cache.cache.directory, "/c");
  EXPECT_EQ(cache.bytes_max, 2U << 20U);
  EXPECT_TRUE(cache.json);
}

}  // namespace
}  // namespace bulkhead::cli
