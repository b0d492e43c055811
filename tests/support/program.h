// Runs another program for a test: posix_spawn, its standard output, its exit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace bulkhead::test {

// A running program of the test's own, killed and reaped at the latest when this is destroyed.
class Program {
 public:
  // `words[0]` is a path or is looked up in PATH. Its stdin and stdout are pipes of ours, its
  // stderr is ours. Aborts the test program if it cannot be started.
  explicit Program(std::vector<std::string> words);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  pid_t pid() const { return pid_; }

  // One line of its output without the newline; nullopt when the output ends or the time is up.
  std::optional<std::string> ReadLine(std::chrono::seconds bound = std::chrono::seconds(30));
  void WriteLine(std::string_view line);
  void Kill(int signal);
  // Exit code, or minus the signal; nullopt when the time is up. Reaps.
  std::optional<int> Wait(std::chrono::seconds bound = std::chrono::seconds(30));

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd in_;
  UniqueFd out_;
  std::string pending_;
  std::optional<int> exit_;
};

bool InPath(const std::string& program);

// True if `fd` polls readable (or ended) within the bound.
bool BecomesReadable(int fd, std::chrono::milliseconds bound);

}  // namespace bulkhead::test
