// Every system call of a run fails once: of the host from the making of its Runtime to its end, of
// the new process before it executes, of init, and of the worker. A run may succeed in spite of it
// or end with a typed outcome; nothing is left behind, nothing hangs, and the destination is old or
// new.
//
// One error for each call, chosen by rotation; with BH_FAULTS=all every error of the table. Each
// test leaves the list of its sites and outcomes in BH_FAULT_LISTS.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "faults/call_table.h"
#include "faults/call_tracer.h"
#include "support/program.h"
#include "support/temp_dir.h"
#include "support/wat.h"

namespace bulkhead::test {
namespace {

constexpr std::string_view kOld = "original";
constexpr std::string_view kNew = "guest output";
// A site of which chance decides whether it comes to pass is met in one of so many starts.
constexpr int kStartsMax = 20;
constexpr int kRecordings = 3;

std::string NameOf(long call) {
  const CallErrors* const known = ErrorsOf(call);
  return known == nullptr ? std::to_string(call) : std::string(known->name);
}

std::string FaultName(const CallFault& fault) {
  std::ostringstream name;
  name << fault.site.role << " " << NameOf(fault.site.call) << "#" << fault.site.ordinal << " "
       << ErrnoName(fault.sys_errno);
  return name.str();
}

// The guest of tests/wasm/write_output.wat, whose output lies behind /host and /tmp.
std::string Guest() {
  std::string text = ReadFile(std::string(BH_SOURCE_DIR) + "/tests/wasm/write_output.wat");
  const auto replace = [&text](std::string_view old, std::string_view by) {
    text.replace(text.find(old, text.find("_start")), old.size(), by);
  };
  replace("$path_open (i32.const 3)", "$path_open (i32.const 5)");
  replace("END", "(nop)");
  const std::vector<std::uint8_t> bytes = AssembleText(text);
  return {bytes.begin(), bytes.end()};
}

// What the host printed.
struct Answer {
  explicit Answer(const std::string& out) {
    std::istringstream lines(out);
    for (std::string name, value; lines >> name && std::getline(lines, value);) {
      value.erase(0, 1);
      (name == "fault" ? faults : values[name]).push_back(value);
    }
  }

  std::string operator[](const std::string& name) const {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second.front();
  }

  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::string> faults;
};

struct Scenario {
  std::string name;
  std::string level = "default";
  enum class Cache { kNone, kEmpty, kFilled } cache = Cache::kNone;
  std::function<bool(const std::string&)> wanted;  // by role
};

// One start of the host in a directory of its own.
class Start {
 public:
  Start(const Scenario& scenario, const std::string& guest, const std::optional<CallFault>& fault) {
    dir_.Write("module.wasm", guest);
    mkdir(dir_.Path("out").c_str(), 0700);
    dir_.Write("out/destination", kOld);
    std::vector<std::string> words = {std::string(BH_TEST_WORKER_DIR) + "/fault_host",
                                      std::string(BH_BIN_DIR) + "/bulkhead-wasm-worker",
                                      dir_.Path("module.wasm"), dir_.Path("out/destination"),
                                      scenario.level};
    if (scenario.cache != Scenario::Cache::kNone) {
      words.push_back(dir_.Path("cache"));
    }
    if (scenario.cache == Scenario::Cache::kFilled) {
      EXPECT_EQ(Program(words).Wait(), 0);
      dir_.Write("out/destination", kOld);
    }
    run_ = TraceCalls(words, fault);
  }

  const TracedRun& run() const { return run_; }

  // How many mechanisms held the worker.
  int Walls() const { return std::atoi(Answer(run_.out)["walls"].c_str()); }

  // What came of it, in one line.
  std::string Result() const {
    const Answer answer(run_.out);
    return answer["code"] + " in " + answer["stage"] +
           (answer["walls"].empty() ? "" : " with " + answer["walls"] + " walls") +
           (answer["diagnostic"].empty() ? "" : ": " + answer["diagnostic"]);
  }

  // One line for each promise that was broken.
  std::vector<std::string> Broken() const;

 private:
  void CheckDestination(const Answer& answer, std::vector<std::string>& broken) const;

  TempDir dir_;
  TracedRun run_;
};

std::vector<std::string> Start::Broken() const {
  const Answer answer(run_.out);
  std::vector<std::string> broken = answer.faults;
  if (run_.hung) {
    broken.emplace_back("hangs");
  } else if (run_.exit != 0 || !answer.values.contains("done")) {
    broken.push_back("the host ended with " + std::to_string(run_.exit.value_or(-1)) + ": " +
                     run_.err);
  }
  for (const std::string& role : run_.left) {
    broken.push_back("left running: " + role);
  }
  const std::string code = answer["code"];
  if (code.empty() || answer["stage"].empty()) {
    broken.emplace_back("no outcome");
  }
  if (code.find("deadline") != std::string::npos) {
    broken.emplace_back("only the deadline ended it");
  }
  const std::string kind = answer["kind"];
  if ((kind.empty() || kind == "failure") && answer["diagnostic"].empty()) {
    broken.emplace_back("no diagnostic");
  }
  CheckDestination(answer, broken);
  return broken;
}

void Start::CheckDestination(const Answer& answer, std::vector<std::string>& broken) const {
  const std::string content = ReadFile(dir_.Path("out/destination"));
  const bool published = answer["published"] == "yes";
  if (content != (published ? kNew : kOld)) {
    broken.push_back("the destination holds \"" + content +
                     "\", published: " + (published ? "yes" : "no"));
  }
  if (answer["code"] == "worker-completed" && !published) {
    broken.emplace_back("completed without its output");
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir_.Path("out"))) {
    if (entry.path().filename() != "destination") {
      broken.push_back("left: " + entry.path().filename().string());
    }
  }
}

class Faults : public testing::Test {
 protected:
  // Those of the roles that every recording has, in the order of the first.
  std::vector<CallSite> Record(const Scenario& scenario) {
    std::map<CallSite, int> seen;
    std::vector<CallSite> order;
    for (int i = 0; i < kRecordings; ++i) {
      const Start start(scenario, guest_, std::nullopt);
      walls_ = start.Walls();
      EXPECT_TRUE(start.Result().starts_with("worker-completed in publish")) << start.Result();
      EXPECT_EQ(start.Broken(), std::vector<std::string>());
      for (const CallSite& site : start.run().sites) {
        if (scenario.wanted(site.role) && ++seen[site] == 1 && i == 0) {
          order.push_back(site);
        }
      }
    }
    std::erase_if(order, [&seen](const CallSite& site) { return seen[site] != kRecordings; });
    return order;
  }

  // The errors of the site that are tried.
  static std::vector<int> Chosen(const CallSite& site, std::size_t turn) {
    const CallErrors* const known = ErrorsOf(site.call);
    if (known == nullptr) {
      ADD_FAILURE() << site.role << " uses system call " << site.call
                    << ", which tests/faults/call_table.cc does not name";
      return {};
    }
    std::vector<int> errors = known->errors();
    const char* const choice = std::getenv("BH_FAULTS");
    if (errors.empty() || (choice != nullptr && std::string_view(choice) == "all")) {
      return errors;
    }
    return {errors[turn % errors.size()]};
  }

  void FailEach(const Scenario& scenario) {
    std::ofstream list(std::string(BH_FAULT_LISTS) + "/" + scenario.name + ".txt");
    const std::vector<CallSite> sites = Record(scenario);
    EXPECT_FALSE(sites.empty());
    for (std::size_t turn = 0; turn < sites.size(); ++turn) {
      const std::vector<int> errors = Chosen(sites[turn], turn);
      if (errors.empty()) {
        list << sites[turn].role << " " << NameOf(sites[turn].call) << "#" << sites[turn].ordinal
             << " cannot fail\n";
      }
      for (const int sys_errno : errors) {
        FailOnce(scenario, {sites[turn], sys_errno, ErrorsOf(sites[turn].call)->takes_effect},
                 list);
      }
    }
  }

 private:
  void FailOnce(const Scenario& scenario, const CallFault& fault, std::ofstream& list) const {
    for (int i = 0; i < kStartsMax; ++i) {
      const Start start(scenario, guest_, fault);
      std::vector<std::string> broken = start.Broken();
      if (Passes(fault.sys_errno) && start.Result().starts_with("worker-completed") &&
          start.Walls() < walls_) {
        broken.emplace_back("less holds the worker for a want that passes");
      }
      if (start.run().hit || !broken.empty()) {
        list << FaultName(fault) << ": " << start.Result() << "\n";
        EXPECT_EQ(broken, std::vector<std::string>()) << FaultName(fault) << ": " << start.Result();
        return;
      }
    }
    ADD_FAILURE() << FaultName(fault) << ": not reached";
  }

  // Says nothing of what the machine offers.
  static bool Passes(int sys_errno) {
    return sys_errno == EINTR || sys_errno == EAGAIN || sys_errno == ENOMEM ||
           sys_errno == EMFILE || sys_errno == ENFILE;
  }

  const std::string guest_ = Guest();
  int walls_ = 0;  // of a run in which nothing fails
};

bool OfHost(const std::string& role) {
  return role.starts_with("fault_host") && !role.starts_with("fault_host-child");
}

bool OfWorker(const std::string& role) {
  return role.starts_with("bulkhead-wasm-worker");
}

bool OfStart(const std::string& role) {
  return !OfHost(role) && !OfWorker(role);
}

TEST_F(Faults, OfTheHost) {
  FailEach({"host", "default", Scenario::Cache::kEmpty, OfHost});
}

TEST_F(Faults, OfTheHostWithCachedCode) {
  FailEach({"host-cached", "default", Scenario::Cache::kFilled, OfHost});
}

TEST_F(Faults, OfTheHostWithoutNamespaces) {
  FailEach({"host-none", "none", Scenario::Cache::kNone,
            [](const std::string& role) { return !OfWorker(role); }});
}

TEST_F(Faults, OfStartingAWorker) {
  FailEach({"start", "default", Scenario::Cache::kNone, OfStart});
}

TEST_F(Faults, OfTheWorker) {
  FailEach({"worker", "default", Scenario::Cache::kNone, OfWorker});
}

// The thread that compiles, of the worker that does nothing else.
TEST_F(Faults, OfTheCompilingWorker) {
  FailEach({"compiler", "default", Scenario::Cache::kEmpty,
            [](const std::string& role) { return role == "bulkhead-wasm-worker.2"; }});
}

}  // namespace
}  // namespace bulkhead::test
