// No sin: writes what it was given and what it can see to guest stdout as "key=value" lines, then
// completes. Outcome: worker-completed (G27, section 4.1).
#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/worker_end.h"

extern char** environ;

namespace {

std::string Target(const std::string& link) {
  std::array<char, 4096> target;
  const ssize_t size = readlink(link.c_str(), target.data(), target.size());
  return size < 0 ? "" : std::string(target.data(), static_cast<std::size_t>(size));
}

// Must run before the program opens or receives anything.
std::string Descriptors() {
  std::vector<int> numbers;
  DIR* dir = opendir("/proc/self/fd");
  for (const dirent* entry = readdir(dir); entry != nullptr; entry = readdir(dir)) {
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != dirfd(dir)) {
      numbers.push_back(std::atoi(entry->d_name));
    }
  }
  closedir(dir);
  std::sort(numbers.begin(), numbers.end());
  std::string lines;
  for (const int number : numbers) {
    lines += "fd" + std::to_string(number) + "=" +
             Target("/proc/self/fd/" + std::to_string(number)) + "\n";
  }
  return lines;
}

std::string Signals() {
  std::string ignored;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action{};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      ignored += std::to_string(signal) + ",";
    }
  }
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  std::string blocked;
  for (int signal = 1; signal < 32; ++signal) {
    blocked += sigismember(&mask, signal) == 1 ? std::to_string(signal) + "," : "";
  }
  return "ignored=" + ignored + "\nblocked=" + blocked + "\n";
}

std::string Limit(const char* name, int resource) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return std::string(name) + "=" +
         (limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur)) + "\n";
}

std::string Process(int argc, char** argv) {
  int parent_death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &parent_death_signal);
  int environment_size = 0;
  while (environ[environment_size] != nullptr) {
    ++environment_size;
  }
  std::string text = "argc=" + std::to_string(argc) + "\nargv0=" + argv[0] +
                     "\nenvironment=" + std::to_string(environment_size) +
                     "\ncwd=" + Target("/proc/self/cwd") +
                     "\nparent_death_signal=" + std::to_string(parent_death_signal) +
                     "\ngroup_leader=" + (getpgrp() == getpid() ? "yes" : "no") + "\n";
  return text + Limit("core", RLIMIT_CORE) + Limit("nofile", RLIMIT_NOFILE) +
         Limit("fsize", RLIMIT_FSIZE) + Limit("cpu", RLIMIT_CPU) +
         Limit("address_space", RLIMIT_AS);
}

std::string Work(const bulkhead::test::WorkerEnd& worker) {
  const bulkhead::wire::Hello& hello = worker.hello();
  const bulkhead::wire::Execute& execute = worker.execute();
  std::string text = "hello.sandbox=" + std::to_string(hello.sandbox) +
                     "\nhello.scratch=" + std::to_string(hello.scratch_bytes) +
                     "\nhello.compile_memory=" + std::to_string(hello.compile_memory_bytes) +
                     "\nhello.cpu_seconds=" + std::to_string(hello.cpu_seconds) + "\n";
  for (const bulkhead::wire::Hello::Directory& directory : hello.directories) {
    text += "directory=" + directory.guest_path + (directory.writable ? " rw\n" : " ro\n");
  }
  text += "execute.module_bytes=" + std::to_string(execute.module_bytes) +
          "\nexecute.remaining_ms=" + std::to_string(execute.remaining_ms) +
          "\nexecute.fuel=" + std::to_string(execute.fuel) +
          "\nexecute.memory=" + std::to_string(execute.memory_bytes) +
          "\nexecute.stack=" + std::to_string(execute.stack_bytes) +
          "\nexecute.cooperative=" + std::to_string(execute.cooperative) +
          "\nexecute.output=" + execute.output_name + "\n";
  for (const std::string& argument : execute.arguments) {
    text += "argument=" + argument + "\n";
  }
  for (const std::string& entry : execute.environment) {
    text += "variable=" + entry + "\n";
  }
  const int seals = fcntl(worker.module().get(), F_GET_SEALS);
  constexpr int kAllSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  text += std::string("module_sealed=") +
          (seals >= 0 && (seals & kAllSeals) == kAllSeals ? "yes" : "no") + "\n";
  const int flags = fcntl(worker.module().get(), F_GETFL);
  return text + "module_access=" + ((flags & O_ACCMODE) == O_RDONLY ? "read" : "write") + "\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string seen = Descriptors() + Signals() + Process(argc, argv);
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  bulkhead::test::WriteFully(worker.guest_stdout(), seen + Work(worker));
  worker.Send(bulkhead::test::Completed());
  return 0;
}
