#include "support/outside_world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "support/proc_view.h"

namespace bulkhead::test {
namespace {

void Need(bool made, const char* what) {
  if (!made) {
    std::perror(what);
    std::abort();
  }
}

std::string HostName() {
  std::array<char, 256> name{};
  Need(gethostname(name.data(), name.size() - 1) == 0, "gethostname");
  return name.data();
}

// Everything of a process that another could have changed.
std::string StateOf(pid_t pid) {
  const auto view = ViewProcess(pid);
  rlimit cpu{};
  prlimit(pid, RLIMIT_CPU, nullptr, &cpu);
  return std::string(view ? 1 : 0, view ? view->state : '?') + " nice " +
         std::to_string(getpriority(PRIO_PROCESS, static_cast<id_t>(pid))) + " cpu " +
         std::to_string(cpu.rlim_cur);
}

bool SomebodyConnected(BorrowedFd listener) {
  return UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)).valid();
}

}  // namespace

OutsideWorld::OutsideWorld() : host_name_(HostName()) {
  MakeFiles();
  MakeListeners();
  MakeTerminal();
  MakeSibling();
}

OutsideWorld::~OutsideWorld() {
  sibling_life_.Reset();
  kill(sibling_, SIGCONT);
  waitpid(sibling_, nullptr, 0);
}

void OutsideWorld::MakeFiles() {
  dir_.Write("secret", "secret");
  for (const std::string& grant : {read_only(), writable()}) {
    std::filesystem::create_directory(grant);
    std::filesystem::copy_file(secret(), grant + "/file");
  }
  std::filesystem::create_symlink("../secret", writable() + "/up");
  std::filesystem::create_symlink(secret(), writable() + "/absolute");
  Need(stat(secret().c_str(), &secret_before_) == 0, "stat");
}

void OutsideWorld::MakeListeners() {
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof loopback;
  auto* const address = reinterpret_cast<sockaddr*>(&loopback);
  tcp_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Need(bind(tcp_.get(), address, bytes) == 0 && listen(tcp_.get(), 1) == 0 &&
           getsockname(tcp_.get(), address, &bytes) == 0,
       "tcp listener");
  tcp_port_ = ntohs(loopback.sin_port);
  sockaddr_un path{};
  path.sun_family = AF_UNIX;
  const std::string name = socket_path();
  Need(name.size() < sizeof path.sun_path, "short path");
  std::memcpy(path.sun_path, name.data(), name.size());
  unix_.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Need(bind(unix_.get(), reinterpret_cast<sockaddr*>(&path), sizeof path) == 0 &&
           listen(unix_.get(), 1) == 0,
       "unix listener");
}

void OutsideWorld::MakeTerminal() {
  terminal_master_.Reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 64> name{};
  Need(grantpt(terminal_master_.get()) == 0 && unlockpt(terminal_master_.get()) == 0 &&
           ptsname_r(terminal_master_.get(), name.data(), name.size()) == 0,
       "terminal");
  terminal_.Reset(open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  Need(terminal_.valid(), "terminal");
}

void OutsideWorld::MakeSibling() {
  std::array<int, 2> life{};
  std::array<int, 2> ready{};
  Need(pipe2(life.data(), O_CLOEXEC) == 0 && pipe2(ready.data(), O_CLOEXEC) == 0, "pipe2");
  sibling_life_.Reset(life[1]);
  const UniqueFd reader(life[0]);
  const UniqueFd ready_reader(ready[0]);
  UniqueFd ready_writer(ready[1]);
  sibling_ = fork();
  Need(sibling_ >= 0, "fork");
  if (sibling_ == 0) {
    sibling_life_.Reset();
    ready_writer.Reset();
    char byte = 0;
    _exit(read(reader.get(), &byte, 1) == 0 ? 0 : 1);
  }
  ready_writer.Reset();
  char byte = 0;
  Need(read(ready_reader.get(), &byte, 1) == 0, "sibling");
  // It waits on its pipe from here on.
  Need(Eventually(std::chrono::seconds(20),
                  [this] {
                    const auto view = ViewProcess(sibling_);
                    return view && view->state == 'S';
                  }),
       "sibling");
  sibling_before_ = StateOf(sibling_);
}

std::vector<std::string> OutsideWorld::Signs() {
  std::vector<std::string> signs;
  FindConnections(signs);
  FindChangedFiles(signs);
  FindTracesOnProcesses(signs);
  return signs;
}

void OutsideWorld::FindConnections(std::vector<std::string>& signs) const {
  if (SomebodyConnected(tcp_.borrow())) {
    signs.emplace_back("a connection to the TCP listener");
  }
  if (SomebodyConnected(unix_.borrow())) {
    signs.emplace_back("a connection to the unix listener");
  }
  int typed = 0;
  if (ioctl(terminal_.get(), FIONREAD, &typed) != 0 || typed != 0) {
    signs.emplace_back("input of the terminal");
  }
}

void OutsideWorld::FindChangedFiles(std::vector<std::string>& signs) const {
  struct stat now{};
  if (stat(secret().c_str(), &now) != 0 || now.st_mode != secret_before_.st_mode ||
      now.st_nlink != secret_before_.st_nlink || now.st_size != secret_before_.st_size ||
      now.st_uid != secret_before_.st_uid || now.st_mtim.tv_sec != secret_before_.st_mtim.tv_sec ||
      now.st_mtim.tv_nsec != secret_before_.st_mtim.tv_nsec) {
    signs.emplace_back("the secret has changed");
  }
  const std::vector<std::string> entries = {"read-only", "secret", "socket", "writable"};
  if (dir_.Entries() != entries) {
    signs.emplace_back("files beside the secret");
  }
  for (const std::string& grant : {read_only(), writable()}) {
    if (ReadFile(grant + "/file") != "secret") {
      signs.push_back("the file in " + grant);
    }
    const auto begin = std::filesystem::directory_iterator(grant);
    const auto count = std::distance(begin, std::filesystem::directory_iterator());
    if (count != (grant == writable() ? 3 : 1)) {
      signs.push_back("entries of " + grant);
    }
  }
  for (const char* path : {"/bulkhead-hostile", "/dev/shm/bulkhead-hostile"}) {
    if (std::filesystem::exists(std::filesystem::symlink_status(path))) {
      signs.emplace_back(path);
    }
  }
}

void OutsideWorld::FindTracesOnProcesses(std::vector<std::string>& signs) const {
  if (const std::string state = StateOf(sibling_); state != sibling_before_) {
    signs.push_back("the sibling: " + state + ", it was " + sibling_before_);
  }
  if (const std::string name = HostName(); name != host_name_) {
    signs.push_back("the host's name: " + name);
  }
}

}  // namespace bulkhead::test
