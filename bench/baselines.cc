#include "baselines.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/unique_fd.h"

namespace bulkhead::bench {
namespace {

using Clock = std::chrono::steady_clock;

double MsSince(Clock::time_point start) {
  return Ms(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Pipe {
  Pipe() {
    std::array<int, 2> fds{};
    if (pipe2(fds.data(), O_CLOEXEC) != 0) {
      std::perror("pipe2");
      std::abort();
    }
    read.Reset(fds[0]);
    write.Reset(fds[1]);
  }

  UniqueFd read;
  UniqueFd write;
};

// Copies until the end of input; the plainest relay one would write.
void Relay(BorrowedFd from, BorrowedFd to) {
  std::array<char, 65536> buffer;
  for (ssize_t got = read(from.get(), buffer.data(), buffer.size()); got > 0;
       got = read(from.get(), buffer.data(), buffer.size())) {
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote =
          write(to.get(), buffer.data() + done, static_cast<std::size_t>(got - done));
      if (wrote <= 0) {
        return;
      }
      done += wrote;
    }
  }
}

// A child that runs `body` and exits.
template <class Body>
pid_t Child(Body body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  return pid;
}

}  // namespace

Series Repeat(int count, const std::function<double()>& measure) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(measure());
  }
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values[values.size() * 95 / 100]};
}

Comparison Compare(int count, const std::function<double()>& figure,
                   const std::function<double()>& baseline) {
  std::vector<double> figures;
  std::vector<double> baselines;
  std::vector<double> ratios;
  for (int i = 0; i < count; ++i) {
    const bool figure_first = i % 2 == 0;
    const double first = figure_first ? figure() : baseline();
    const double second = figure_first ? baseline() : figure();
    figures.push_back(figure_first ? first : second);
    baselines.push_back(figure_first ? second : first);
    ratios.push_back(figures.back() / baselines.back());
  }
  return {Median(figures), Median(baselines), Median(ratios)};
}

double InOwnSession(const std::function<double()>& measure) {
  const Pipe answer;
  const pid_t pid = Child([&] {
    setsid();
    const double value = measure();
    [[maybe_unused]] const ssize_t wrote = write(answer.write.get(), &value, sizeof value);
  });
  int status = 0;
  double value = 0;
  if (waitpid(pid, &status, 0) != pid || status != 0 ||
      read(answer.read.get(), &value, sizeof value) != sizeof value) {
    std::fputs("bench: a baseline gave no answer\n", stderr);
    std::exit(1);
  }
  return value;
}

double Oversleep(int count, std::chrono::milliseconds sleep) {
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(sleep);
  }
  return MsSince(start) / count - Ms(sleep).count();
}

double SpawnAndReap(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& word : command) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  std::array<char*, 1> environment{nullptr};
  const auto start = Clock::now();
  pid_t pid = 0;
  if (posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environment.data()) != 0) {
    std::perror(argv[0]);
    std::abort();
  }
  waitpid(pid, nullptr, 0);
  return MsSince(start);
}

double KillToExit(int pid) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const auto start = Clock::now();
  syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
  pollfd exited{pidfd.get(), POLLIN, 0};
  poll(&exited, 1, -1);
  return MsSince(start);
}

double TwoPipeRelay(std::uint64_t bytes) {
  Pipe first;
  Pipe second;
  fcntl(first.write.get(), F_SETPIPE_SZ, 1 << 20);
  const pid_t writer = Child([&] {
    const std::vector<char> block(65536, 'x');
    for (std::uint64_t sent = 0; sent < bytes; sent += block.size()) {
      [[maybe_unused]] const ssize_t wrote = write(first.write.get(), block.data(), block.size());
    }
  });
  first.write.Reset();
  const auto start = Clock::now();
  const pid_t relay = Child([&] { Relay(first.read.borrow(), second.write.borrow()); });
  second.write.Reset();
  std::array<char, 65536> buffer;
  std::uint64_t received = 0;
  for (ssize_t got = 1; got > 0;) {
    got = read(second.read.get(), buffer.data(), buffer.size());
    received += static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
  }
  const double ms = MsSince(start);
  waitpid(writer, nullptr, 0);
  waitpid(relay, nullptr, 0);
  return static_cast<double>(received) / (1 << 20) / (ms / 1000);
}

SelfUse ReadSelfUse() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1000 + static_cast<double>(t.tv_usec) / 1000;
  };
  std::uint64_t pages = 0;
  if (std::FILE* statm = std::fopen("/proc/self/statm", "re"); statm != nullptr) {
    unsigned long total = 0;
    unsigned long resident = 0;
    if (std::fscanf(statm, "%lu %lu", &total, &resident) == 2) {
      pages = resident;
    }
    std::fclose(statm);
  }
  return {ms(use.ru_utime) + ms(use.ru_stime), static_cast<std::uint64_t>(use.ru_nvcsw),
          pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
}

}  // namespace bulkhead::bench
