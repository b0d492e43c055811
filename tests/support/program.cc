#include "support/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "base/check.h"

extern char** environ;

namespace bulkhead::test {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Program::Program(std::vector<std::string> words) {
  int to_program[2];
  int from_program[2];
  BH_CHECK(pipe2(to_program, O_CLOEXEC) == 0 && pipe2(from_program, O_CLOEXEC) == 0);
  const UniqueFd child_in(to_program[0]);
  const UniqueFd child_out(from_program[1]);
  in_.Reset(to_program[1]);
  out_.Reset(from_program[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_out.get(), STDOUT_FILENO);
  std::vector<char*> argv = Pointers(words);
  BH_CHECK(posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  pidfd_.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  BH_CHECK(pidfd_.valid());
}

Program::~Program() {
  if (!exit_) {
    Kill(SIGKILL);
    Wait();
  }
}

std::optional<std::string> Program::ReadLine(std::chrono::seconds bound) {
  for (;;) {
    if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
      const std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> buffer;
    if (!BecomesReadable(out_.get(), bound)) {
      return std::nullopt;
    }
    const ssize_t got = read(out_.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      return std::nullopt;
    }
    pending_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void Program::WriteLine(std::string_view line) {
  const std::string bytes = std::string(line) + "\n";
  BH_CHECK(write(in_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}

void Program::Kill(int signal) {
  syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

std::optional<int> Program::Wait(std::chrono::seconds bound) {
  if (!exit_ && BecomesReadable(pidfd_.get(), bound)) {
    int status = 0;
    BH_CHECK(waitpid(pid_, &status, 0) == pid_);
    exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  return exit_;
}

bool InPath(const std::string& program) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (access((directory + "/" + program).c_str(), X_OK) == 0) {
      return true;
    }
  }
  return false;
}

bool BecomesReadable(int fd, std::chrono::milliseconds bound) {
  pollfd entry{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, static_cast<int>(bound.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace bulkhead::test
