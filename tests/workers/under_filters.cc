// Executes a program that finds the filters of a worker, made for its process id, on descriptors 4
// (lock-down) and 5 (guest phase), and a socket on 3:
//   under_filters PROGRAM [ARG]...
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "base/unique_fd.h"
#include "worker/seccomp_filter.h"

namespace {

using bulkhead::worker::DirectoryUse;
using bulkhead::worker::FilterProgram;

constexpr int kSocket = 3;
constexpr int kLockdownFilter = 4;
constexpr int kGuestPhaseFilter = 5;
constexpr int kExitBroken = 70;

// A duplicate of `fd` at `target`, inherited by the program.
bool Place(int fd, int target) {
  const bulkhead::UniqueFd away(fcntl(fd, F_DUPFD_CLOEXEC, kGuestPhaseFilter + 1));
  return dup2(away.get(), target) == target;
}

bool Offer(const FilterProgram& unbound, int target) {
  const bulkhead::worker::BpfCode program = bulkhead::worker::Bind(unbound, {getpid()});
  const int file = memfd_create("filter", MFD_CLOEXEC);
  const std::size_t bytes = program.size() * sizeof(sock_filter);
  return write(file, program.data(), bytes) == static_cast<ssize_t>(bytes) && Place(file, target);
}

}  // namespace

int main(int argc, char** argv) {
  int pair[2];
  if (argc < 2 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    std::perror("under_filters");
    return kExitBroken;
  }
  // The far end stays open with the program.
  if (fcntl(pair[1], F_DUPFD, kGuestPhaseFilter + 1) < 0 || !Place(pair[0], kSocket) ||
      !Offer(bulkhead::worker::LockdownProgram(DirectoryUse::kNone), kLockdownFilter) ||
      !Offer(bulkhead::worker::GuestPhaseProgram(), kGuestPhaseFilter)) {
    std::perror("under_filters");
    return kExitBroken;
  }
  execv(argv[1], argv + 1);
  std::perror(argv[1]);
  return kExitBroken;
}
