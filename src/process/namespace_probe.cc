#include "process/namespace_probe.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace bulkhead::process {

int TryUserNamespace() {
  const pid_t child = fork();
  if (child < 0) {
    return errno;
  }
  if (child == 0) {
    _exit(unshare(CLONE_NEWUSER) == 0 && unshare(CLONE_NEWNS) == 0 ? 0 : errno);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return errno;
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EFAULT;
}

}  // namespace bulkhead::process
