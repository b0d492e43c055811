#include "cli/option_table.h"

#include <array>

namespace bulkhead::cli {
namespace {

constexpr std::array<std::string_view, 4> kProfiles{"auto", "wasi", "wasi-threads", "sketch"};
constexpr std::array<std::string_view, 3> kSandboxes{"strict", "default", "none"};
constexpr std::array<std::string_view, 2> kStopModes{"cooperative", "kill"};

constexpr std::array<std::string_view, 3> kCacheActions{"stat", "prune", "verify"};

constexpr std::string_view kLimits = "Limits";
constexpr std::string_view kFiles = "Files and streams";
constexpr std::string_view kContainment = "Containment";
constexpr std::string_view kResults = "Results";

constexpr OptionSpec kHelpOption{
    .name = "--help", .short_name = "-h", .group = kResults, .help = "Show this help and exit"};
constexpr OptionSpec kJsonOption{
    .name = "--json", .group = kResults, .help = "Print one JSON object instead of text"};

constexpr OptionSpec kCacheOption{
    .name = "--cache",
    .value_name = "DIR|off",
    .group = kFiles,
    .help =
        "Where compiled code is kept for later runs; off compiles in each run "
        "($XDG_CACHE_HOME/bulkhead/code by default, else ~/.cache/bulkhead/code)",
    .completion = Completion::kDirectory};

constexpr std::array kRunOptions{
    OptionSpec{.name = "--deadline",
               .value_name = "DUR",
               .fallback = "30s",
               .group = kLimits,
               .help = "Time for the whole run, from reading the module to the published output"},
    OptionSpec{.name = "--grace",
               .value_name = "DUR",
               .fallback = "2s",
               .group = kLimits,
               .help = "Time between asking the guest to stop and killing its worker, at most 60s"},
    OptionSpec{.name = "--cpu-time",
               .value_name = "DUR",
               .group = kLimits,
               .help = "Processor time of the worker, compiling included; rounded up to seconds "
                       "(no limit by default)"},
    OptionSpec{.name = "--fuel",
               .value_name = "N",
               .group = kLimits,
               .help =
                   "About how many instructions the guest may execute, such as 1_000_000 or 1e9 "
                   "(no limit by default)"},
    OptionSpec{.name = "--memory",
               .value_name = "SIZE",
               .fallback = "1GiB",
               .group = kLimits,
               .help = "Memory of the guest: its linear memories and tables"},
    OptionSpec{.name = "--compile-memory",
               .value_name = "SIZE",
               .fallback = "2GiB",
               .group = kLimits,
               .help = "Memory of the worker while it compiles the module"},
    OptionSpec{.name = "--compile-time",
               .value_name = "DUR",
               .fallback = "60s",
               .group = kLimits,
               .help = "Time for compiling the module; the deadline holds all the same"},
    OptionSpec{.name = "--threads",
               .value_name = "N",
               .fallback = "16",
               .group = kLimits,
               .help = "Threads that the guest may have started and that still run, 1 to 1024"},
    OptionSpec{.name = "--stack",
               .value_name = "SIZE",
               .fallback = "2MiB",
               .group = kLimits,
               .help = "Stack of each thread of the guest, 64KiB to 64MiB"},
    OptionSpec{.name = "--stdout-limit",
               .value_name = "SIZE",
               .group = kLimits,
               .help = "Bytes the guest may write to its standard output (no limit by default)"},
    OptionSpec{.name = "--output-limit",
               .value_name = "SIZE",
               .fallback = "1GiB",
               .group = kLimits,
               .help = "Size of the output file; a larger one is not published"},
    OptionSpec{.name = "--output",
               .short_name = "-o",
               .value_name = "PATH",
               .group = kFiles,
               .help =
                   "The one file the guest may produce, as /output/NAME in its eyes, where NAME "
                   "is the last part of PATH; it appears complete, after success, or not at all",
               .completion = Completion::kFile},
    OptionSpec{.name = "--no-clobber",
               .group = kFiles,
               .help = "Fail instead of replacing an existing output file"},
    OptionSpec{.name = "--dir",
               .value_name = "HOST[::GUEST]",
               .group = kFiles,
               .help = "Let the guest read the directory HOST as GUEST; without GUEST under the "
                       "same path, a relative HOST below /",
               .completion = Completion::kDirectory,
               .repeatable = true},
    OptionSpec{.name = "--dir-rw",
               .value_name = "HOST[::GUEST]",
               .group = kFiles,
               .help = "The same with write access; what the guest writes goes straight to the "
                       "host, also when the run fails",
               .completion = Completion::kDirectory,
               .repeatable = true},
    OptionSpec{.name = "--scratch",
               .value_name = "SIZE",
               .group = kFiles,
               .help = "Give the guest a private /tmp of this size, gone after the run (none by "
                       "default)"},
    OptionSpec{.name = "--stdin",
               .value_name = "FILE",
               .fallback = "empty",
               .group = kFiles,
               .help = "What the guest reads: a file, - for the command's own standard input, or "
                       "empty (a file of that name is ./empty)",
               .completion = Completion::kFile},
    OptionSpec{.name = "--env",
               .value_name = "K=V",
               .group = kFiles,
               .help = "Set a variable of the guest's environment, which is empty otherwise",
               .repeatable = true},
    kCacheOption,
    OptionSpec{.name = "--profile",
               .value_name = "PROFILE",
               .fallback = "auto",
               .group = kContainment,
               .help = "The kind of module to accept",
               .completion = Completion::kChoices,
               .choices = kProfiles},
    OptionSpec{.name = "--sandbox",
               .value_name = "LEVEL",
               .fallback = "default",
               .group = kContainment,
               .help =
                   "What holds the worker beside its process boundary and resource limits: default "
                   "is all that this machine offers, strict refuses to run with less than "
                   "everything, none leaves it at these",
               .completion = Completion::kChoices,
               .choices = kSandboxes},
    OptionSpec{.name = "--require",
               .value_name = "MECHANISM",
               .group = kContainment,
               .help = "Do not run without this mechanism, such as pid-namespace, empty-root or "
                       "no-capabilities (the report's 'containment' names what there is). "
                       "cgroup-memory and cgroup-pids are made for it also where they cost "
                       "each start milliseconds",
               .repeatable = true},
    OptionSpec{.name = "--stop-mode",
               .value_name = "MODE",
               .fallback = "cooperative",
               .group = kContainment,
               .help =
                   "How a guest is stopped; kill compiles without stop checks, which is a little "
                   "faster, and every stop is a kill",
               .completion = Completion::kChoices,
               .choices = kStopModes},
    OptionSpec{.name = "--repeat",
               .value_name = "N",
               .group = kResults,
               .help = "Run the module N times, each with the whole deadline; the report has one "
                       "line per run and a summary"},
    OptionSpec{.name = "--jobs",
               .value_name = "N",
               .fallback = "1",
               .group = kResults,
               .help = "With --repeat: runs at the same time; above 1 a guest's output is written "
                       "when it has ended (the first 1 MiB)"},
    OptionSpec{.name = "--report",
               .value_name = "FILE",
               .group = kResults,
               .help = "Write a JSON report (schema bulkhead.run-report/1), also of a run that "
                       "fails; - is standard error",
               .completion = Completion::kFile},
    OptionSpec{.name = "--status-fd",
               .value_name = "N",
               .group = kResults,
               .help = "Write stage changes and the final code as JSON lines to the open "
                       "descriptor N; lines it cannot take at once are dropped"},
    OptionSpec{.name = "--quiet",
               .short_name = "-q",
               .group = kResults,
               .help = "Say nothing but what went wrong"},
    kHelpOption,
};

constexpr std::array kJsonCommandOptions{kJsonOption, kHelpOption};

constexpr std::array kRunExamples{
    Example{"bulkhead run hello.wasm -- --name World", "run a module with two arguments"},
    Example{"bulkhead run draw.wasm --output out.png --deadline 5s --memory 256MiB",
            "one output file, complete or absent"},
    Example{"bulkhead run wc.wasm --stdin - --dir data::/data --report run.json < input.txt",
            "standard input, a readable directory and a report"},
};

constexpr std::array kInspectExamples{
    Example{"bulkhead inspect module.wasm", "what it imports and whether it would be run"},
    Example{"bulkhead inspect module.wasm --json", "the same for programs"},
};

constexpr std::array kGuestPackOptions{
    OptionSpec{.name = "--output",
               .short_name = "-o",
               .value_name = "FILE",
               .group = kFiles,
               .help = "Where the packed module goes; an existing file is replaced as a whole",
               .completion = Completion::kFile},
    kHelpOption};

constexpr std::array kGuestPackExamples{
    Example{"bulkhead guest-pack linked.wasm -o sketch.wasm", "after linking, before running"},
};

constexpr std::array kCacheOptions{
    OptionSpec{.name = "--cache",
               .value_name = "DIR",
               .group = kFiles,
               .help = "The cache to look after (the default one of run otherwise)",
               .completion = Completion::kDirectory},
    OptionSpec{.name = "--size",
               .value_name = "SIZE",
               .fallback = "1GiB",
               .group = kLimits,
               .help = "What prune leaves at most, 0B for nothing"},
    kJsonOption, kHelpOption};

constexpr std::array kCacheExamples{
    Example{"bulkhead cache stat", "how much compiled code there is, and where"},
    Example{"bulkhead cache prune --size 0B", "remove all of it"},
};

constexpr std::array kDoctorExamples{
    Example{"bulkhead doctor", "what is missing on this machine, and how to fix it"},
};

constexpr std::array kAuditExamples{
    Example{"bulkhead audit 4711", "what holds the worker with this process id"},
    Example{"bulkhead audit 4711 --json", "the same for programs"},
};

constexpr std::array kVersionExamples{
    Example{"bulkhead version --json", "version, build, protocol and engine for programs"},
};

constexpr std::array kCommands{
    CommandSpec{
        .name = "run",
        .synopsis = "[OPTION]... MODULE [-- ARG]...",
        .summary = "run a WebAssembly module once, contained",
        .description =
            "Runs MODULE (.wasm or .wat) once in a fresh worker process that can always be killed. "
            "The guest's standard output is the command's; everything the command says goes to "
            "standard error. Words after -- are the guest's arguments. Durations need a unit (ns, "
            "us, ms, s, m, h), and so do sizes (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB). A guest "
            "writes its "
            "output as the file /output/NAME; the destination's directory must exist, and the "
            "destination must be absent or a regular file.",
        .takes_module = true,
        .takes_arguments = true,
        .options = kRunOptions,
        .examples = kRunExamples},
    CommandSpec{.name = "inspect",
                .synopsis = "[OPTION]... MODULE",
                .summary = "say what a module is and whether it would be admitted; runs nothing",
                .description =
                    "Prints the profile, imports, exports and memories of MODULE and every reason "
                    "to refuse it. Exits with 0 if it would be admitted, 126 if not, 127 if it "
                    "does not exist.",
                .takes_module = true,
                .options = kJsonCommandOptions,
                .examples = kInspectExamples},
    CommandSpec{.name = "guest-pack",
                .synopsis = "MODULE -o FILE",
                .summary = "make a linked sketch carry the guest contract",
                .description =
                    "Writes MODULE with this version's manifest and target features, and without "
                    "custom sections that the contract forbids, to FILE. Checks the result: what "
                    "would be refused is not written.",
                .takes_module = true,
                .options = kGuestPackOptions,
                .examples = kGuestPackExamples},
    CommandSpec{.name = "cache",
                .synopsis = "stat|prune|verify [OPTION]...",
                .summary = "look after the compiled code that runs keep",
                .description =
                    "stat counts entries and bytes. prune removes what was not used for longest, "
                    "and what writers that died left. verify reads every entry and removes those "
                    "that are not whole. Runs may go on meanwhile. Exits with 1 if an entry was "
                    "found at fault or could not be removed.",
                .actions = kCacheActions,
                .options = kCacheOptions,
                .examples = kCacheExamples},
    CommandSpec{.name = "doctor",
                .synopsis = "[OPTION]...",
                .summary = "say what this machine offers, what is missing and how to fix it",
                .description =
                    "Examines the kernel, the limits and the installation, then runs a tiny module "
                    "in the default containment. Exits with 0 if that works and 1 if not.",
                .options = kJsonCommandOptions,
                .examples = kDoctorExamples},
    CommandSpec{.name = "audit",
                .synopsis = "[OPTION]... PID",
                .summary = "say what holds a live worker, as seen from outside",
                .description =
                    "Prints one line for each mechanism that a worker is meant to have: ok, weaker "
                    "with what that means, or unknown with the reason; nothing is guessed. Root "
                    "sees everything but Landlock, others what /proc shows them. PID is in the "
                    "report, and in the lines of --status-fd. Exits with 0 if nothing is weaker "
                    "than the level default promises on every machine, 1 if something is, 127 if "
                    "there is no such process.",
                .takes_process = true,
                .options = kJsonCommandOptions,
                .examples = kAuditExamples},
    CommandSpec{.name = "version",
                .synopsis = "[OPTION]...",
                .summary = "print the version, the build, the protocol and the engine",
                .description = "Prints what identifies this installation.",
                .options = kJsonCommandOptions,
                .examples = kVersionExamples},
};

constexpr std::array kExitStatuses{
    ExitStatusSpec{"0", "completed"},
    ExitStatusSpec{
        "1..119",
        "the guest's own exit code; one above 119 is given as 119 and is exact in the report"},
    ExitStatusSpec{"120", "out of fuel"},
    ExitStatusSpec{"121", "memory or another resource limit ended the run"},
    ExitStatusSpec{"122", "bad usage or configuration"},
    ExitStatusSpec{"124", "deadline exceeded, cooperative or forced"},
    ExitStatusSpec{"125",
                   "Bulkhead itself failed: launch, protocol, containment, output or report file, "
                   "worker death"},
    ExitStatusSpec{"126",
                   "module refused at admission, unreadable, or not compilable within its limits"},
    ExitStatusSpec{"127", "module or worker not found"},
    ExitStatusSpec{"129", "cancelled by SIGHUP"},
    ExitStatusSpec{"130",
                   "cancelled by SIGINT (Ctrl-C); a second signal of any kind ends the grace"},
    ExitStatusSpec{"134", "the guest trapped, or a thread of a sketch failed"},
    ExitStatusSpec{"141", "the reader of standard output left before the guest was done"},
    ExitStatusSpec{"143", "cancelled by SIGTERM"},
};

constexpr std::array kVariables{
    VariableSpec{"BULKHEAD_WORKER_DIR",
                 "folder of the worker programs; else they are looked for beside the command and "
                 "in libexec/bulkhead of the installation"},
    VariableSpec{"XDG_CACHE_HOME",
                 "folder in which bulkhead/code is the default of --cache; else HOME/.cache"},
    VariableSpec{"NO_COLOR", "if set and not empty: no colours"},
    VariableSpec{"CLICOLOR_FORCE",
                 "if set and neither empty nor 0: colours also when standard error is no "
                 "terminal; NO_COLOR outranks it"},
    VariableSpec{"TERM", "dumb: neither colours nor the live line of runs that take over a second"},
};

}  // namespace

std::span<const CommandSpec> Commands() {
  return kCommands;
}

const CommandSpec* FindCommand(std::string_view name) {
  for (const CommandSpec& command : kCommands) {
    if (command.name == name) {
      return &command;
    }
  }
  return nullptr;
}

const OptionSpec* FindOption(const CommandSpec& command, std::string_view name) {
  for (const OptionSpec& option : command.options) {
    if (option.name == name || (!option.short_name.empty() && option.short_name == name)) {
      return &option;
    }
  }
  return nullptr;
}

std::span<const ExitStatusSpec> ExitStatuses() {
  return kExitStatuses;
}

std::span<const VariableSpec> EnvironmentVariables() {
  return kVariables;
}

}  // namespace bulkhead::cli
