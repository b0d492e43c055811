#include "support/proc_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <sstream>

#include "base/unique_fd.h"
#include "support/temp_dir.h"

namespace bulkhead::test {
namespace {

// Names in a directory that are numbers.
std::vector<int> NumbersIn(const char* path, int* own_descriptor) {
  std::vector<int> numbers;
  DIR* dir = opendir(path);
  if (dir == nullptr) {
    return numbers;
  }
  *own_descriptor = dirfd(dir);
  for (const dirent* entry = readdir(dir); entry != nullptr; entry = readdir(dir)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0) {
      numbers.push_back(std::stoi(entry->d_name));
    }
  }
  closedir(dir);
  return numbers;
}

}  // namespace

std::optional<ProcessView> ViewProcess(pid_t pid) {
  const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos) {
    return std::nullopt;
  }
  ProcessView view;
  view.pid = pid;
  view.name = stat.substr(open + 1, close - open - 1);
  std::istringstream rest(stat.substr(close + 1));
  rest >> view.state >> view.parent >> view.group >> view.session;
  std::string skipped;
  for (int field = 7; field < 22; ++field) {
    rest >> skipped;
  }
  rest >> view.start_time;
  return view;
}

std::vector<ProcessView> AllProcesses() {
  std::vector<ProcessView> views;
  int own_descriptor = -1;
  for (const int pid : NumbersIn("/proc", &own_descriptor)) {
    if (const std::optional<ProcessView> view = ViewProcess(pid)) {
      views.push_back(*view);
    }
  }
  return views;
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const ProcessView& process : AllProcesses()) {
    if (process.parent == parent) {
      children.push_back(process.pid);
    }
  }
  return children;
}

bool StillRuns(pid_t pid, std::uint64_t start_time) {
  const std::optional<ProcessView> view = ViewProcess(pid);
  return view && view->start_time == start_time && !view->zombie();
}

std::size_t ThreadCount() {
  int own_descriptor = -1;
  return NumbersIn("/proc/self/task", &own_descriptor).size();
}

std::map<int, std::string> OpenDescriptors() {
  std::map<int, std::string> descriptors;
  int own_descriptor = -1;
  for (const int fd : NumbersIn("/proc/self/fd", &own_descriptor)) {
    if (fd == own_descriptor) {
      continue;
    }
    std::array<char, 4096> target;
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t size = readlink(link.c_str(), target.data(), target.size());
    descriptors[fd] = size < 0 ? "?" : std::string(target.data(), static_cast<std::size_t>(size));
  }
  return descriptors;
}

bool Eventually(std::chrono::milliseconds bound, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) {
      return false;
    }
    poll(nullptr, 0, 1);
  }
  return true;
}

bool NobodyHoldsAliveLock(const std::string& directory) {
  const UniqueFd alive(open((directory + "/alive").c_str(), O_RDWR | O_CLOEXEC));
  return alive.valid() && flock(alive.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace bulkhead::test
