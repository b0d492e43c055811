// No sin: completes and exits while the parent is stopped (SIGSTOP) and cannot look. Outcome: what
// a parent makes of it that finds, when it goes on, the deadline passed and the worker gone.
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "support/worker_end.h"

namespace {

// Field 3 of stat, behind the name in parentheses.
char StateOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string line = text.str();
  const std::size_t name_end = line.rfind(") ");
  return name_end == std::string::npos ? '?' : line[name_end + 2];
}

}  // namespace

int main() {
  bulkhead::test::WorkerEnd worker;
  worker.StartGuest();
  while (StateOf(getppid()) != 'T') {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  worker.Send(bulkhead::test::Completed());
  return 0;
}
