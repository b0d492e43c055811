#include "cli/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace bulkhead::cli {
namespace {

constexpr std::string_view kAskRoot = "root may see it";
constexpr std::string_view kInitName = "bulkhead-init";
constexpr std::string_view kNobody = "65534";
// DAC_OVERRIDE and FOWNER: what root keeps for granted directories.
constexpr std::uint64_t kFileRights = 1U << 1 | 1U << 3;
// The worker's own bound with directory grants (src/worker/lockdown.cc), the largest it sets.
constexpr std::uint64_t kOpenFilesMax = 1120;
constexpr unsigned kUmaskAtLeast = 022;

AuditFinding Ok(std::string_view mechanism, std::string finding) {
  return {std::string(mechanism), AuditState::kOk, std::move(finding), {}};
}

AuditFinding Weaker(std::string_view mechanism, std::string finding, std::string_view meaning) {
  return {std::string(mechanism), AuditState::kWeaker, std::move(finding), std::string(meaning)};
}

AuditFinding Unknown(std::string_view mechanism, std::string finding, std::string_view meaning) {
  return {std::string(mechanism), AuditState::kUnknown, std::move(finding), std::string(meaning)};
}

AuditFinding Unreadable(std::string_view mechanism, const Error& error) {
  return Unknown(mechanism, "may not be read: " + error.message, kAskRoot);
}

AuditFinding WhereGiven(AuditFinding finding) {
  finding.promised = false;
  return finding;
}

std::uint64_t Number(std::string_view text, int base = 10) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) {
    words.push_back(word);
  }
  return words;
}

bool AllEqual(const std::vector<std::string>& words, std::string_view value) {
  return !words.empty() && std::all_of(words.begin(), words.end(),
                                       [&](const std::string& word) { return word == value; });
}

// ---- One mechanism each ----

AuditFinding JudgeSeccomp(const ProcessView& process, const ProcessView& own) {
  constexpr std::string_view kFilterMode = "2";
  if (process.Status("Seccomp") != kFilterMode) {
    return Weaker("seccomp", "no filter", "it can make every system call");
  }
  if (process.Status("Seccomp_filters").empty()) {
    return Unknown("seccomp", "filtered, by an unknown number of filters",
                   "kernels before 5.9 do not count them");
  }
  const std::uint64_t all = Number(process.Status("Seccomp_filters"));
  const std::uint64_t inherited = std::min(all, Number(own.Status("Seccomp_filters")));
  const std::uint64_t count = all - inherited;
  switch (count) {
    case 0:
      return Weaker("seccomp", "no filter but those it inherited", "it is not locked down");
    case 1:
      return Ok("seccomp", "the filter of the lock-down; its guest does not run yet");
    default:
      return Ok("seccomp", fmt::format("{} filters, that of the guest phase too", count));
  }
}

AuditFinding JudgeNoNewPrivileges(const ProcessView& process) {
  return process.Status("NoNewPrivs") == "1"
             ? Ok("no-new-privs", "set")
             : Weaker("no-new-privs", "not set", "set-id programs would give it rights");
}

AuditFinding JudgeDumpable(const ProcessView& process) {
  const std::vector<std::string> users = Words(process.Status("Uid"));
  const std::string owner = std::to_string(process.files_owner);
  constexpr std::size_t kEffective = 1;
  if (users.size() <= kEffective || users[kEffective] == "0") {
    return Unknown("not-dumpable", "not to be seen of a process of root",
                   "its files in /proc are root's either way");
  }
  if (owner != users[kEffective]) {
    return Ok("not-dumpable", "its files in /proc are not its user's");
  }
  if (process.user_map && Words(*process.user_map).size() == 3) {
    return Unknown("not-dumpable", "not to be seen in a user namespace of one user",
                   "its files in /proc are that user's either way");
  }
  return Weaker("not-dumpable", "dumpable",
                "processes of the same user can trace it and read its memory");
}

AuditFinding JudgeCapabilities(const ProcessView& process) {
  std::uint64_t all = 0;
  for (const std::string_view set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    all |= Number(process.Status(set), 16);
  }
  if (all == 0) {
    return Ok("no-capabilities", "none");
  }
  if ((all & ~kFileRights) == 0) {
    return Ok("file-capabilities-only", "those by which root reaches files of granted directories");
  }
  return Weaker("no-capabilities", fmt::format("{:#x}", all), "it has rights of root");
}

AuditFinding JudgeUser(const ProcessView& process) {
  const std::vector<std::string> users = Words(process.Status("Uid"));
  const std::vector<std::string> groups = Words(process.Status("Gid"));
  const std::string finding =
      fmt::format("user {}, group {}", fmt::join(users, " "), fmt::join(groups, " "));
  if (users.empty() || !AllEqual(users, users.front()) || groups.empty() ||
      !AllEqual(groups, groups.front())) {
    return Weaker("unprivileged-user", finding, "it can change to another of these");
  }
  const std::string one = fmt::format("user {}, group {}", users.front(), groups.front());
  if (users.front() == kNobody && groups.front() == kNobody) {
    return Ok("unprivileged-user", one + ": nobody");
  }
  if (users.front() == "0") {
    return WhereGiven(
        Weaker("unprivileged-user", one,
               "as a worker of root has to be with granted directories: root's files are its own"));
  }
  return Ok("unprivileged-user", one);
}

AuditFinding JudgeGroups(const ProcessView& process) {
  const std::vector<std::string> groups = Words(process.Status("Groups"));
  if (groups.empty() || AllEqual(groups, kNobody)) {
    return Ok("groups", "none beside its own");
  }
  return WhereGiven(Weaker("groups", fmt::format("{}", fmt::join(groups, " ")),
                           "within granted directories it reaches what these groups reach"));
}

AuditFinding JudgeUmask(const ProcessView& process) {
  const std::string_view mask = process.Status("Umask");
  const bool enough = (Number(mask, 8) & kUmaskAtLeast) == kUmaskAtLeast;
  return enough ? Ok("umask", std::string(mask))
                : Weaker("umask", std::string(mask), "what it creates can be written by others");
}

struct NamespaceRow {
  std::string_view kind;  // in /proc
  std::string_view mechanism;
  std::string_view shared;  // what it means
};

constexpr std::array kNamespaceRows{
    NamespaceRow{"pid", "pid-namespace",
                 "it can name other processes, and its tree can outlive it"},
    NamespaceRow{"mnt", "mount-namespace", "paths lead to the machine's files"},
    NamespaceRow{"net", "network-namespace", "the machine's interfaces and sockets are there"},
    NamespaceRow{"ipc", "ipc-namespace", "it shares System V and POSIX objects"},
    NamespaceRow{"uts", "uts-namespace", "it knows the machine's name"},
};

AuditFinding JudgeNamespace(const NamespaceRow& row, const ProcessView& process,
                            const ProcessView& own) {
  const auto& theirs = process.namespaces.find(row.kind)->second;
  const auto& ours = own.namespaces.find(row.kind)->second;
  // One number a namespace it can be seen from: more than ours is deeper than ours.
  if (!theirs && row.kind == "pid" &&
      Words(process.Status("NSpid")).size() > Words(own.Status("NSpid")).size()) {
    return WhereGiven(Ok(row.mechanism, "its own"));
  }
  if (!theirs || !ours) {
    return WhereGiven(Unreadable(row.mechanism, theirs ? ours.error() : theirs.error()));
  }
  return WhereGiven(*theirs == *ours ? Weaker(row.mechanism, "shared with this process", row.shared)
                                     : Ok(row.mechanism, "its own"));
}

// Not a wall but a way to have the others, so that either is fine.
AuditFinding JudgeUserNamespace(const ProcessView& process, const ProcessView& own) {
  if (!process.user_map || !own.user_map) {
    return Unreadable("user-namespace",
                      process.user_map ? own.user_map.error() : process.user_map.error());
  }
  return Ok("user-namespace", Words(*process.user_map) == Words(*own.user_map)
                                  ? "shared with this process"
                                  : "its own");
}

AuditFinding JudgeRoot(const ProcessView& process) {
  if (!process.root) {
    return WhereGiven(Unreadable("empty-root", process.root.error()));
  }
  if (process.root->empty && process.root->read_only) {
    return WhereGiven(Ok("empty-root", "empty, and cannot be written"));
  }
  return WhereGiven(Weaker("empty-root",
                           process.root->empty ? "empty, and can be written" : "files",
                           "only Landlock and the filters keep it from the machine's files"));
}

AuditFinding JudgeLandlock() {
  return Unknown("landlock", "cannot be seen from outside",
                 "the run's report has it, as the worker says");
}

AuditFinding JudgeDescriptors(const ProcessView& process) {
  if (!process.descriptors) {
    return Unreadable("descriptors", process.descriptors.error());
  }
  std::vector<std::string> shown;
  bool device = false;
  for (const auto& [number, target] : *process.descriptors) {
    shown.push_back(fmt::format("{} {}", number, target));
    device = device || (target.starts_with("/dev/") && target != "/dev/null");
  }
  const std::string finding = fmt::format("{}: {}", shown.size(), fmt::join(shown, ", "));
  return device ? Weaker("descriptors", finding, "it holds a device or terminal of the machine")
                : Ok("descriptors", finding);
}

AuditFinding JudgeEnvironment(const ProcessView& process) {
  if (!process.environment) {
    return Unreadable("environment", process.environment.error());
  }
  const auto count = std::count(process.environment->begin(), process.environment->end(), '\0');
  return process.environment->empty() ? Ok("environment", "empty")
                                      : Weaker("environment", fmt::format("{} variables", count),
                                               "secrets of whoever started it may be in there");
}

AuditFinding JudgeLimits(const ProcessView& process) {
  const auto hard = [&](const char* name) {
    const auto found = process.limits.find(name);
    return found == process.limits.end() ? std::string("unlimited") : found->second.hard;
  };
  constexpr std::string_view kNone = "unlimited";
  const std::string core = hard("Max core file size");
  const std::string files = hard("Max open files");
  const std::string data = hard("Max data size");
  const std::string size = hard("Max file size");
  const std::string finding =
      fmt::format("core {}, open files {}, data {}, file size {}, processor time {}", core, files,
                  data, size, hard("Max cpu time"));
  std::vector<std::string_view> missing;
  if (core != "0") {
    missing.push_back("core dumps");
  }
  if (files == kNone || Number(files) > kOpenFilesMax) {
    missing.push_back("open files");
  }
  if (data == kNone) {
    missing.push_back("memory");
  }
  if (size == kNone) {
    missing.push_back("file size");
  }
  return missing.empty()
             ? Ok("rlimits", finding)
             : Weaker("rlimits", finding, fmt::format("not bounded: {}", fmt::join(missing, ", ")));
}

bool HasInit(const ProcessView& process) {
  return process.parent.name == kInitName && process.parent.first_of_namespace;
}

AuditFinding JudgeInit(const ProcessView& process) {
  return WhereGiven(HasInit(process)
                        ? Ok("init", "its parent is bulkhead-init")
                        : Weaker("init", fmt::format("its parent is '{}'", process.parent.name),
                                 "what it forks may stay when it ends"));
}

AuditFinding JudgeParentDeath(const ProcessView& process) {
  if (HasInit(process)) {
    return Ok("parent-death-signal", "not needed: all ends with its init");
  }
  return Unknown("parent-death-signal", "cannot be seen from outside",
                 "only the process itself can ask the kernel");
}

AuditFinding JudgeCgroup(const ProcessView& process, const ProcessView& own) {
  if (!process.cgroup || !own.cgroup) {
    return WhereGiven(
        Unreadable("cgroup", process.cgroup ? own.cgroup.error() : process.cgroup.error()));
  }
  if (process.cgroup->find("/bulkhead-") != std::string::npos) {
    return WhereGiven(Ok("cgroup", "one of its own"));
  }
  const std::string_view whose =
      *process.cgroup == *own.cgroup ? "that of this process" : "none of its own";
  if (HasInit(process)) {
    return WhereGiven(Ok("cgroup", fmt::format("{}; its tree ends with its init", whose)));
  }
  return WhereGiven(
      Weaker("cgroup", std::string(whose), "its tree is killed by process group alone"));
}

// Beyond what the kernel takes for no limit: version 2 says so, version 1 shows a huge number.
bool IsLimit(std::string_view text) {
  constexpr std::uint64_t kHuge = 1ULL << 62;
  return !text.empty() && text != "max" && Number(text) < kHuge;
}

AuditFinding JudgeCgroupLimit(std::string_view mechanism, const Result<std::string>& limit,
                              std::string_view unit, std::string_view meaning) {
  if (!limit) {
    return WhereGiven(Unreadable(mechanism, limit.error()));
  }
  return WhereGiven(IsLimit(*limit) ? Ok(mechanism, fmt::format("{} {}", *limit, unit))
                                    : Weaker(mechanism, "no limit", meaning));
}

AuditFinding JudgeThreads(const ProcessView& process) {
  return Ok("threads", std::string(process.Status("Threads")));
}

}  // namespace

std::string_view AuditStateName(AuditState state) {
  switch (state) {
    case AuditState::kOk:
      return "ok";
    case AuditState::kWeaker:
      return "weaker";
    case AuditState::kUnknown:
      return "unknown";
  }
  return "unknown";
}

bool Audit::holds() const {
  return std::none_of(findings.begin(), findings.end(), [](const AuditFinding& finding) {
    return finding.promised && finding.state == AuditState::kWeaker;
  });
}

Audit JudgeProcess(const ProcessView& process, const ProcessView& own) {
  Audit audit;
  audit.pid = process.pid;
  audit.program = process.Status("Name");
  std::vector<AuditFinding>& findings = audit.findings;
  findings.push_back(JudgeSeccomp(process, own));
  findings.push_back(JudgeLandlock());
  findings.push_back(JudgeNoNewPrivileges(process));
  findings.push_back(JudgeCapabilities(process));
  findings.push_back(JudgeUser(process));
  findings.push_back(JudgeGroups(process));
  findings.push_back(JudgeDumpable(process));
  findings.push_back(JudgeUmask(process));
  for (const NamespaceRow& row : kNamespaceRows) {
    findings.push_back(JudgeNamespace(row, process, own));
  }
  findings.push_back(JudgeUserNamespace(process, own));
  findings.push_back(JudgeRoot(process));
  findings.push_back(JudgeDescriptors(process));
  findings.push_back(JudgeEnvironment(process));
  findings.push_back(JudgeLimits(process));
  findings.push_back(JudgeInit(process));
  findings.push_back(JudgeParentDeath(process));
  findings.push_back(JudgeCgroup(process, own));
  findings.push_back(JudgeCgroupLimit("cgroup-memory", process.memory_limit, "bytes",
                                      "memory files and the kernel's own memory are not bounded"));
  findings.push_back(JudgeCgroupLimit("cgroup-pids", process.tasks_limit, "processes and threads",
                                      "threads are bounded by their stacks' memory alone"));
  findings.push_back(JudgeThreads(process));
  return audit;
}

}  // namespace bulkhead::cli
