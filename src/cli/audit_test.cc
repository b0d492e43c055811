// The judgement of a process, on made-up ones: each mechanism that a worker lacks is found, and
// what may not be read is not guessed.
#include "cli/audit.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "base/errno_error.h"

namespace bulkhead::cli {
namespace {

// The process that asks.
ProcessView Own() {
  ProcessView view;
  view.pid = 10;
  view.status = {{"NSpid", "10"}};
  view.cgroup = "0::/\n";
  view.user_map = "0 0 4294967295\n";
  for (const std::string_view name : ProcessView::kNamespaces) {
    view.namespaces.emplace(name, "outer");
  }
  return view;
}

// A worker as it should be, started by root.
ProcessView Worker() {
  ProcessView view;
  view.pid = 20;
  view.status = {{"Name", "worker"},
                 {"Seccomp", "2"},
                 {"Seccomp_filters", "2"},
                 {"NoNewPrivs", "1"},
                 {"Uid", "65534\t65534\t65534\t65534"},
                 {"Gid", "65534\t65534\t65534\t65534"},
                 {"Groups", ""},
                 {"Umask", "0077"},
                 {"NSpid", "20\t2"},
                 {"Threads", "3"}};
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    view.status[set] = "0000000000000000";
  }
  view.limits = {{"Max core file size", {"0", "0"}},
                 {"Max open files", {"96", "96"}},
                 {"Max data size", {"1000000", "1000000"}},
                 {"Max file size", {"4096", "4096"}}};
  view.parent = {"bulkhead-init", true};
  view.cgroup = "0::/\n";
  view.memory_limit = "1000000";
  view.tasks_limit = "40";
  view.user_map = "0 0 4294967295\n";
  view.root = ProcessView::Root{true, true};
  view.descriptors = std::map<int, std::string>{{0, "/dev/null"}, {3, "socket:[1]"}};
  for (const std::string_view name : ProcessView::kNamespaces) {
    view.namespaces.emplace(name, name == "user" ? "outer" : "inner");
  }
  return view;
}

const AuditFinding& Find(const Audit& audit, std::string_view mechanism) {
  static const AuditFinding kNone;
  for (const AuditFinding& finding : audit.findings) {
    if (finding.mechanism == mechanism) {
      return finding;
    }
  }
  ADD_FAILURE() << "no finding named " << mechanism;
  return kNone;
}

TEST(Audit, NothingIsWeakerOfAWorkerAsItShouldBe) {
  const Audit audit = JudgeProcess(Worker(), Own());
  EXPECT_TRUE(audit.holds());
  EXPECT_EQ(audit.program, "worker");
  for (const AuditFinding& finding : audit.findings) {
    EXPECT_EQ(finding.state,
              finding.mechanism == "landlock" ? AuditState::kUnknown : AuditState::kOk)
        << finding.mechanism;
    EXPECT_EQ(finding.meaning.empty(), finding.state == AuditState::kOk) << finding.mechanism;
  }
}

struct Change {
  std::string_view mechanism;
  AuditState state;
  bool holds;
  std::function<void(ProcessView&)> make;
};

// tidy: decision-table
TEST(Audit, EachGapIsFound) {
  const auto weaker = AuditState::kWeaker;
  const auto unknown = AuditState::kUnknown;
  const auto set = [](const char* field, const char* value) {
    return [=](ProcessView& view) { view.status[field] = value; };
  };
  const auto limit = [](const char* name, const char* hard) {
    return [=](ProcessView& view) { view.limits[name].hard = hard; };
  };
  const auto share = [](const char* name) {
    return [=](ProcessView& view) { view.namespaces.find(name)->second = "outer"; };
  };
  const Change changes[] = {
      {"seccomp", weaker, false, set("Seccomp", "0")},
      {"seccomp", weaker, false, set("Seccomp_filters", "0")},
      {"seccomp", unknown, true, set("Seccomp_filters", "")},
      {"no-new-privs", weaker, false, set("NoNewPrivs", "0")},
      {"cgroup-memory", weaker, true, [](ProcessView& view) { view.memory_limit = ""; }},
      {"cgroup-memory", weaker, true,
       [](ProcessView& view) { view.memory_limit = "9223372036854771712"; }},
      {"cgroup-pids", weaker, true, [](ProcessView& view) { view.tasks_limit = "max"; }},
      {"no-capabilities", weaker, false, set("CapEff", "0000000000200000")},
      {"no-capabilities", weaker, false, set("CapAmb", "0000000000000004")},
      {"unprivileged-user", weaker, false, set("Uid", "65534\t0\t65534\t65534")},
      {"unprivileged-user", weaker, false, set("Gid", "65534\t65534\t0\t65534")},
      {"unprivileged-user", weaker, true, set("Uid", "0\t0\t0\t0")},
      {"groups", weaker, true, set("Groups", "4 27")},
      {"not-dumpable", unknown, true, set("Uid", "0\t0\t0\t0")},
      {"not-dumpable", weaker, false,
       [](ProcessView& view) {
         view.files_owner = 65534;
         view.user_map = "";
       }},
      {"umask", weaker, false, set("Umask", "0002")},
      {"pid-namespace", weaker, true, share("pid")},
      {"mount-namespace", weaker, true, share("mnt")},
      {"network-namespace", weaker, true, share("net")},
      {"ipc-namespace", weaker, true, share("ipc")},
      {"uts-namespace", weaker, true, share("uts")},
      {"empty-root", weaker, true, [](ProcessView& view) { view.root->empty = false; }},
      {"empty-root", weaker, true, [](ProcessView& view) { view.root->read_only = false; }},
      {"descriptors", weaker, false,
       [](ProcessView& view) { view.descriptors->emplace(4, "/dev/pts/0"); }},
      {"environment", weaker, false,
       [](ProcessView& view) { view.environment = std::string("A=1\0B=2\0", 8); }},
      {"rlimits", weaker, false, limit("Max core file size", "unlimited")},
      {"rlimits", weaker, false, limit("Max open files", "4096")},
      {"rlimits", weaker, false, limit("Max data size", "unlimited")},
      {"rlimits", weaker, false, limit("Max file size", "unlimited")},
      {"init", weaker, true, [](ProcessView& view) { view.parent = {"sh", true}; }},
      {"init", weaker, true, [](ProcessView& view) { view.parent.first_of_namespace = false; }},
      {"parent-death-signal", unknown, true,
       [](ProcessView& view) { view.parent = {"sh", false}; }},
      {"cgroup", weaker, true, [](ProcessView& view) { view.parent = {"sh", false}; }},
  };
  for (const Change& change : changes) {
    ProcessView process = Worker();
    change.make(process);
    const Audit audit = JudgeProcess(process, Own());
    EXPECT_EQ(Find(audit, change.mechanism).state, change.state) << change.mechanism;
    EXPECT_FALSE(Find(audit, change.mechanism).meaning.empty()) << change.mechanism;
    EXPECT_EQ(audit.holds(), change.holds) << change.mechanism;
  }
}

TEST(Audit, WhatMayNotBeReadIsUnknown) {
  ProcessView process = Worker();
  const Error denied = ErrnoError("open", "it", EACCES);
  process.environment = Fail(denied);
  process.root = Fail(denied);
  process.descriptors = Fail(denied);
  process.cgroup = Fail(denied);
  process.user_map = Fail(denied);
  for (auto& [name, target] : process.namespaces) {
    target = Fail(denied);
  }
  const Audit audit = JudgeProcess(process, Own());
  for (const std::string_view mechanism :
       {"environment", "empty-root", "descriptors", "cgroup", "user-namespace", "mount-namespace",
        "network-namespace", "ipc-namespace", "uts-namespace"}) {
    EXPECT_EQ(Find(audit, mechanism).state, AuditState::kUnknown) << mechanism;
    EXPECT_NE(Find(audit, mechanism).finding.find("Permission denied"), std::string::npos);
  }
  // Another file tells.
  EXPECT_EQ(Find(audit, "pid-namespace").state, AuditState::kOk);
  EXPECT_TRUE(audit.holds());
}

TEST(Audit, FiltersOfTheCallerAreNotTheWorkers) {
  ProcessView own = Own();
  own.status["Seccomp_filters"] = "2";
  EXPECT_EQ(Find(JudgeProcess(Worker(), own), "seccomp").state, AuditState::kWeaker);
  own.status["Seccomp_filters"] = "1";
  EXPECT_EQ(Find(JudgeProcess(Worker(), own), "seccomp").state, AuditState::kOk);
}

}  // namespace
}  // namespace bulkhead::cli
