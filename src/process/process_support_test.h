// What the tests of this folder share: scripts as workers, hosts in processes of their own, and a
// look at /proc.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "process/launcher.h"
#include "process/worker_process.h"

namespace bulkhead::process {

// Generous: only reached when something is broken.
inline constexpr std::chrono::seconds kTestPatience{20};

Deadline Soon();

// A private directory, removed with what is in it.
class TestDirectory {
 public:
  TestDirectory();
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  ~TestDirectory();

  const std::string& path() const { return path_; }

  // "#!/bin/sh" and `body`, executable; returns the path.
  std::string Script(const std::string& name, std::string_view body) const;
  std::string File(const std::string& name, std::string_view text, unsigned mode) const;

 private:
  std::string path_;
};

struct TestPipe {
  UniqueFd reader;
  UniqueFd writer;
};

TestPipe MakePipe();

// Reads up to the newline, or to the end; fails the test after kTestPatience.
std::string ReadLine(BorrowedFd fd);
std::string ReadToEnd(BorrowedFd fd);

// A running /bin/cat that has finished loading: it echoes what it is told, and /proc can be asked
// about it.
class EchoWorker {
 public:
  // `spec` may carry more; program and the descriptors 0 and 1 are added.
  static std::unique_ptr<EchoWorker> Start(Launcher& launcher, SpawnSpec spec = {});

  WorkerProcess& process() { return *process_; }

  pid_t pid() const { return process_->identity().pid; }

  void CloseInput() { input_.Reset(); }

 private:
  UniqueFd input_;
  UniqueFd output_;
  std::unique_ptr<WorkerProcess> process_;
};

// A worker whose descriptor 3 is a pipe to the test.
struct ReportingWorker {
  std::unique_ptr<WorkerProcess> process;
  UniqueFd report;
};

ReportingWorker StartReporting(Launcher& launcher, const std::string& program);

// Waits until it ends by itself and reaps it; fails the test unless both give the same status.
ExitStatus RunToEnd(WorkerProcess& process);

std::set<int> OpenDescriptors(pid_t pid);
std::size_t OwnDescriptorCount();
// This process has a child that nobody reaped.
bool HasZombie();
// Field of /proc/<pid>/status, e.g. "SigIgn".
std::string StatusField(pid_t pid, std::string_view name);

// Waits for any process, by pidfd; true if it is gone in time.
bool GoneSoon(const ProcessIdentity& identity);
// Leaf cgroups of Bulkhead that exist, of any owner; empty also where there are none.
std::set<std::string> LeafCgroups();
ProcessIdentity IdentityFromLine(std::string_view line);

// Runs `body` in a forked process, which exits with what it returns (0: fine). The test's process
// stays untouched by what it does to signals, limits and namespaces.
class TestHost {
 public:
  explicit TestHost(const std::function<int()>& body, int clone_flags = 0);
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;
  ~TestHost();

  bool started() const { return pid_ > 0; }  // false: clone_flags are not permitted

  pid_t pid() const { return pid_; }

  void Kill() const;
  // Exit code, or 128 + signal.
  int Wait();

 private:
  pid_t pid_ = -1;
};

// For bodies of hosts, where gtest cannot record: says what is wrong and yields 1.
#define BH_HOST_EXPECT(condition)                                                    \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: host expected: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                                      \
    }                                                                                \
  } while (false)

// The exit code by which a host says that the machine lacks something.
inline constexpr int kHostSkips = 77;

}  // namespace bulkhead::process
