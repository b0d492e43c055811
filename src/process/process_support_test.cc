#include "process/process_support_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/proc_stat.h"
#include "base/text_file.h"
#include "process/cgroup_location.h"
#include "process/pidfd.h"

namespace bulkhead::process {

Deadline Soon() {
  return Deadline::After(MonotonicClock().Now(), kTestPatience);
}

TestDirectory::TestDirectory() {
  std::string pattern = testing::TempDir() + "bulkhead-process-XXXXXX";
  const char* made = mkdtemp(pattern.data());
  EXPECT_NE(made, nullptr);
  path_ = pattern;
}

TestDirectory::~TestDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TestDirectory::File(const std::string& name, std::string_view text,
                                unsigned mode) const {
  std::string path = path_ + "/" + name;
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  EXPECT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(fchmod(file.get(), mode), 0);
  return path;
}

std::string TestDirectory::Script(const std::string& name, std::string_view body) const {
  return File(name, "#!/bin/sh\n" + std::string(body) + "\n", 0700);
}

TestPipe MakePipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

namespace {

std::string ReadUntil(BorrowedFd fd, char stop, bool stops) {
  std::string text;
  for (;;) {
    const Result<bool> ready = WaitExited(fd, Soon());  // any readable descriptor will do
    if (!ready.value_or(false)) {
      ADD_FAILURE() << "nothing to read in time, after: " << text;
      return text;
    }
    char c = 0;
    if (read(fd.get(), &c, 1) != 1 || (stops && c == stop)) {
      return text;
    }
    text += c;
  }
}

}  // namespace

std::string ReadLine(BorrowedFd fd) {
  return ReadUntil(fd, '\n', true);
}

std::string ReadToEnd(BorrowedFd fd) {
  return ReadUntil(fd, '\0', false);
}

std::unique_ptr<EchoWorker> EchoWorker::Start(Launcher& launcher, SpawnSpec spec) {
  TestPipe in = MakePipe();
  TestPipe out = MakePipe();
  spec.program = "/bin/cat";
  spec.descriptors.push_back({in.reader.borrow(), 0});
  spec.descriptors.push_back({out.writer.borrow(), 1});
  Result<std::unique_ptr<WorkerProcess>> process = launcher.Spawn(spec);
  if (!process) {
    ADD_FAILURE() << process.error().message;
    return nullptr;
  }
  out.writer.Reset();
  EXPECT_EQ(write(in.writer.get(), "ready\n", 6), 6);
  EXPECT_EQ(ReadLine(out.reader.borrow()), "ready");
  auto worker = std::make_unique<EchoWorker>();
  worker->input_ = std::move(in.writer);
  worker->output_ = std::move(out.reader);
  worker->process_ = *std::move(process);
  return worker;
}

ReportingWorker StartReporting(Launcher& launcher, const std::string& program) {
  TestPipe report = MakePipe();
  SpawnSpec spec;
  spec.program = program;
  spec.descriptors = {{report.writer.borrow(), 3}};
  Result<std::unique_ptr<WorkerProcess>> process = launcher.Spawn(spec);
  EXPECT_TRUE(process.has_value()) << process.error().message;
  return {process ? *std::move(process) : nullptr, std::move(report.reader)};
}

ExitStatus RunToEnd(WorkerProcess& process) {
  EXPECT_TRUE(WaitExited(process.pidfd(), Soon()).value_or(false));
  const auto seen = process.Observe();
  EXPECT_TRUE(seen && *seen) << "no exit seen";
  const auto status = process.KillAndReap(Soon());
  EXPECT_TRUE(status && *status) << "not reaped";
  EXPECT_EQ(*seen, *status);
  return status && *status ? **status : ExitStatus{};
}

std::set<int> OpenDescriptors(pid_t pid) {
  std::set<int> open;
  std::error_code error;
  const std::string path = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    open.insert(std::stoi(entry.path().filename().string()));
  }
  return open;
}

std::size_t OwnDescriptorCount() {
  return OpenDescriptors(getpid()).size();
}

bool HasZombie() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

std::set<std::string> LeafCgroups() {
  std::set<std::string> leaves;
  const auto locations = FindCgroupLocations(ReadTextFile("/proc/self/cgroup").value_or(""),
                                             ReadTextFile("/proc/self/mountinfo").value_or(""));
  for (const CgroupLocation& location : locations) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(location.directory, error)) {
      if (entry.path().filename().string().starts_with("bulkhead-")) {
        leaves.insert(entry.path().string());
      }
    }
  }
  return leaves;
}

std::string StatusField(pid_t pid, std::string_view name) {
  const std::string text =
      ReadTextFile(("/proc/" + std::to_string(pid) + "/status").c_str()).value_or("");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(std::string(name) + ":\t")) {
      return line.substr(name.size() + 2);
    }
  }
  return {};
}

bool GoneSoon(const ProcessIdentity& identity) {
  const Result<UniqueFd> pidfd = OpenPidfd(identity.pid);
  if (!pidfd || !Alive(identity)) {
    return !Alive(identity);
  }
  return WaitExited(pidfd->borrow(), Soon()).value_or(false);
}

ProcessIdentity IdentityFromLine(std::string_view line) {
  const pid_t pid = static_cast<pid_t>(std::strtol(std::string(line).c_str(), nullptr, 10));
  return IdentityOf(pid).value_or(ProcessIdentity{});
}

TestHost::TestHost(const std::function<int()>& body, int clone_flags) {
  pid_ = static_cast<pid_t>(
      clone_flags == 0 ? fork() : syscall(SYS_clone, clone_flags | SIGCHLD, 0, 0, 0, 0));
  if (pid_ == 0) {
    _exit(body());
  }
}

TestHost::~TestHost() {
  if (pid_ > 0) {
    Kill();
    Wait();
  }
}

void TestHost::Kill() const {
  kill(pid_, SIGKILL);
}

int TestHost::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace bulkhead::process
