// Attempts to reach files, mounts and terminals, and to leave signs on what others can see.
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#include "hostile/attempts.h"
#include "process/raw_call.h"

namespace bulkhead::hostile {
namespace {

using process::Call;

constexpr int kMagicLength = 16;
constexpr unsigned kDeviceNull = 0x103;
constexpr int kKeyPrivate = 0;

// For a table row whose call needs nothing but the path of the secret.
template <long number, long second = 0, long third = 0>
long OnSecret(const Target& target) {
  return Call(number, target.secret, second, third);
}

template <long number, long first = 0, long second = 0, long third = 0, long fourth = 0>
long Plain(const Target& /*target*/) {
  return Call(number, first, second, third, fourth);
}

long OpenAt(int directory, const char* path, int flags, unsigned mode = 0) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.mode = mode;
  return Call(__NR_openat2, directory, path, &how, sizeof how);
}

template <short type>
long Lock(const Target& target) {
  struct flock lock{};
  lock.l_type = type;
  return Call(__NR_fcntl, target.held_stream, F_SETLK, &lock);
}

long TypeIntoTerminals(const Target& target) {
  const char letter = '\n';
  for (long fd = 0; fd <= target.held_stream; ++fd) {
    if (const long typed = Call(__NR_ioctl, fd, TIOCSTI, &letter); typed != -ENOSYS) {
      return typed;
    }
  }
  return -ENOSYS;
}

const Attempt kRows[] = {
    {"open", ENOSYS, OnSecret<__NR_open, O_RDONLY>},
    {"openat", ENOSYS,
     [](const Target& target) { return Call(__NR_openat, AT_FDCWD, target.secret, O_RDWR); }},
    {"creat", ENOSYS, [](const Target& target) { return Call(__NR_creat, target.new_path, 0666); }},
    {"stat", ENOSYS,
     [](const Target& target) {
       struct stat buffer;
       return Call(__NR_stat, target.secret, &buffer);
     }},
    {"newfstatat", ENOSYS,
     [](const Target& target) {
       struct stat buffer;
       return Call(__NR_newfstatat, AT_FDCWD, target.secret, &buffer, 0);
     }},
    {"statx", ENOSYS,
     [](const Target& target) {
       char buffer[256];
       return Call(__NR_statx, AT_FDCWD, target.secret, 0, 0x7FF, buffer);
     }},
    {"access", ENOSYS, OnSecret<__NR_access>},
    {"truncate", ENOSYS, OnSecret<__NR_truncate>},
    {"unlink", ENOSYS, OnSecret<__NR_unlink>},
    {"chmod", ENOSYS, OnSecret<__NR_chmod, 04777>},
    {"chown", ENOSYS, OnSecret<__NR_chown, 1, 1>},
    {"utimensat by path", ENOSYS,
     [](const Target& target) {
       const timespec times[2] = {};
       return Call(__NR_utimensat, AT_FDCWD, target.secret, times, 0);
     }},
    {"utime", ENOSYS, OnSecret<__NR_utime>},
    {"setxattr", ENOSYS,
     [](const Target& target) {
       return Call(__NR_setxattr, target.secret, "user.mark", "x", 1, 0);
     }},
    {"rename", ENOSYS,
     [](const Target& target) { return Call(__NR_rename, target.secret, target.new_path); }},
    {"link", ENOSYS,
     [](const Target& target) { return Call(__NR_link, target.secret, target.new_path); }},
    {"symlink", ENOSYS,
     [](const Target& target) { return Call(__NR_symlink, target.secret, target.new_path); }},
    {"mkdir", ENOSYS, [](const Target& target) { return Call(__NR_mkdir, target.new_path, 0777); }},
    {"chdir", ENOSYS, [](const Target&) { return Call(__NR_chdir, "/"); }},
    {"fchdir", ENOSYS, Plain<__NR_fchdir, 1>},
    {"getcwd", ENOSYS,
     [](const Target&) {
       char buffer[64];
       return Call(__NR_getcwd, buffer, sizeof buffer);
     }},
    {"set-id bit on a held file", ENOSYS,
     [](const Target& target) { return Call(__NR_fchmod, target.held_stream, 04777); }},
    {"owner of a held file", ENOSYS,
     [](const Target& target) { return Call(__NR_fchown, target.held_stream, 1, 1); }},
    {"fifo", kKilled,
     [](const Target& target) { return Call(__NR_mknod, target.new_path, S_IFIFO | 0666, 0); }},
    {"device", kKilled,
     [](const Target& target) {
       return Call(__NR_mknodat, AT_FDCWD, target.new_path, S_IFCHR | 0666, kDeviceNull);
     }},
    {"handle of a path", kKilled, OnSecret<__NR_name_to_handle_at>},
    {"open by handle", kKilled,
     [](const Target&) {
       char handle[kMagicLength] = {};
       return Call(__NR_open_by_handle_at, AT_FDCWD, handle, O_RDONLY);
     }},
    {"mount", kKilled, [](const Target&) { return Call(__NR_mount, "none", "/", "tmpfs", 0, 0); }},
    {"umount", kKilled, [](const Target&) { return Call(__NR_umount2, "/", 2); }},
    {"pivot_root", kKilled, [](const Target&) { return Call(__NR_pivot_root, ".", "."); }},
    {"chroot", kKilled, [](const Target&) { return Call(__NR_chroot, "/"); }},
    {"fsopen", kKilled, [](const Target&) { return Call(__NR_fsopen, "proc", 0); }},
    {"open_tree", kKilled, [](const Target&) { return Call(__NR_open_tree, AT_FDCWD, "/", 1); }},
    {"move_mount", kKilled,
     [](const Target&) { return Call(__NR_move_mount, AT_FDCWD, "/", AT_FDCWD, "/", 0); }},
    {"mount_setattr", kKilled,
     [](const Target&) { return Call(__NR_mount_setattr, AT_FDCWD, "/", 0, 0, 0); }},
    {"memory file", ENOSYS, [](const Target&) { return Call(__NR_memfd_create, "m", 0); }},
    {"pipe", ENOSYS,
     [](const Target&) {
       int ends[2];
       return Call(__NR_pipe2, ends, 0);
     }},
    {"splice", ENOSYS, Plain<__NR_splice, 0, 0, 1, 0>},
    {"vmsplice", kKilled, Plain<__NR_vmsplice, 1>},
    {"copy_file_range", ENOSYS, Plain<__NR_copy_file_range, 0, 0, 1, 0>},
    {"inotify", ENOSYS, Plain<__NR_inotify_init1>},
    {"fanotify", kKilled, Plain<__NR_fanotify_init>},
    {"flock", ENOSYS,
     [](const Target& target) { return Call(__NR_flock, target.held_stream, LOCK_EX | LOCK_NB); }},
    {"record lock", ENOSYS, Lock<F_WRLCK>},
    {"lease", ENOSYS,
     [](const Target& target) {
       return Call(__NR_fcntl, target.held_stream, F_SETLEASE, F_WRLCK);
     }},
    {"size of a held pipe", ENOSYS,
     [](const Target& target) {
       return Call(__NR_fcntl, target.held_stream, F_SETPIPE_SZ, 1 << 20);
     }},
    {"System V shared memory", ENOSYS, Plain<__NR_shmget, kKeyPrivate, 4096, 01666>},
    {"System V messages", ENOSYS, Plain<__NR_msgget, kKeyPrivate, 01666>},
    {"System V semaphores", ENOSYS, Plain<__NR_semget, kKeyPrivate, 1, 01666>},
    {"POSIX messages", ENOSYS,
     [](const Target&) {
       return Call(__NR_mq_open, "bulkhead-hostile", O_CREAT | O_RDWR, 0666, 0);
     }},
    {"typing into a terminal", ENOSYS, TypeIntoTerminals},
    {"taking a terminal", ENOSYS, Plain<__NR_ioctl, 0, TIOCSCTTY>},
    {"umask", ENOSYS, Plain<__NR_umask, 0>},
    {"swap", kKilled, OnSecret<__NR_swapon>},
    {"end of swap", kKilled, OnSecret<__NR_swapoff>},
    {"quota", kKilled, Plain<__NR_quotactl>},
    {"accounting", kKilled, OnSecret<__NR_acct>},
    {"sync", ENOSYS, Plain<__NR_sync>},
};

// ---- With directory grants ----

template <int flags>
long OpenSecret(const Target& target) {
  return OpenAt(AT_FDCWD, target.secret, flags);
}

const PathAttempt kPathRows[] = {
    {"read by absolute path", ENOENT, EACCES, OpenSecret<O_RDONLY>},
    {"write by absolute path", ENOENT, EACCES, OpenSecret<O_WRONLY | O_TRUNC>},
    {"create by absolute path", ENOENT, EACCES,
     [](const Target& target) {
       return OpenAt(AT_FDCWD, target.new_path, O_CREAT | O_WRONLY, 0666);
     }},
    {"create in the root", EROFS, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/bulkhead-hostile", O_CREAT | O_WRONLY, 0666); }},
    {"list the root", EACCES, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY); }},
    {"read above a grant", EACCES, EACCES,
     [](const Target& target) { return OpenAt(target.writable, "../secret", O_RDONLY); }},
    {"read above a grant, with a slash", ENOTDIR, ENOTDIR,
     [](const Target& target) { return OpenAt(target.writable, "../secret/", O_RDONLY); }},
    {"list above a grant", EACCES, EACCES,
     [](const Target& target) { return OpenAt(target.read_only, "..", O_RDONLY | O_DIRECTORY); }},
    {"create above a grant", EACCES, EACCES,
     [](const Target& target) {
       return OpenAt(target.writable, "../new", O_CREAT | O_WRONLY, 0666);
     }},
    {"through a relative link", EACCES, EACCES,
     [](const Target& target) { return OpenAt(target.writable, "up", O_RDONLY); }},
    {"through an absolute link", ENOENT, EACCES,
     [](const Target& target) { return OpenAt(target.writable, "absolute", O_RDONLY); }},
    {"write to a read-only grant", EACCES, EACCES,
     [](const Target& target) { return OpenAt(target.read_only, "file", O_WRONLY); }},
    {"truncate in a read-only grant", EACCES, EACCES,
     [](const Target& target) { return OpenAt(target.read_only, "file", O_RDWR | O_TRUNC); }},
    {"create in a read-only grant", EACCES, EACCES,
     [](const Target& target) {
       return OpenAt(target.read_only, "new", O_CREAT | O_WRONLY, 0666);
     }},
    {"reopen what was opened as a path only", EACCES, EACCES,
     [](const Target& target) {
       const long place = OpenAt(target.writable, "..", O_PATH);
       return place < 0 ? place : OpenAt(static_cast<int>(place), "secret", O_RDONLY);
     }},
    {"mkdir above a grant", EACCES, EACCES,
     [](const Target& target) { return Call(__NR_mkdirat, target.writable, "../new", 0777); }},
    {"mkdir in a read-only grant", EACCES, EACCES,
     [](const Target& target) { return Call(__NR_mkdirat, target.read_only, "new", 0777); }},
    {"unlink above a grant", EACCES, EACCES,
     [](const Target& target) { return Call(__NR_unlinkat, target.writable, "../secret", 0); }},
    {"unlink in a read-only grant", EACCES, EACCES,
     [](const Target& target) { return Call(__NR_unlinkat, target.read_only, "file", 0); }},
    {"move out of a grant", EACCES, EACCES,
     [](const Target& target) {
       return Call(__NR_renameat, target.writable, "file", target.writable, "../new");
     }},
    {"move into a grant", EACCES, EACCES,
     [](const Target& target) {
       return Call(__NR_renameat, target.writable, "../secret", target.writable, "stolen");
     }},
    {"move out of a read-only grant", EACCES, EACCES,
     [](const Target& target) {
       return Call(__NR_renameat, target.read_only, "file", target.writable, "stolen");
     }},
    {"hard link into a grant", EXDEV, EXDEV,
     [](const Target& target) {
       return Call(__NR_linkat, target.writable, "../secret", target.writable, "stolen", 0);
     }},
    {"hard link from a read-only grant", EXDEV, EXDEV,
     [](const Target& target) {
       return Call(__NR_linkat, target.read_only, "file", target.writable, "stolen", 0);
     }},
    {"symbolic link above a grant", EACCES, EACCES,
     [](const Target& target) {
       return Call(__NR_symlinkat, "/etc/passwd", target.writable, "../new");
     }},
    {"times above a grant", ENOSYS, ENOSYS,
     [](const Target& target) {
       const timespec times[2] = {};
       return Call(__NR_utimensat, target.writable, "../secret", times, 0);
     }},
    {"device in a grant", kKilled, kKilled,
     [](const Target& target) {
       return Call(__NR_mknodat, target.writable, "new", S_IFCHR | 0666, kDeviceNull);
     }},
    {"set-id bit in a grant", ENOSYS, ENOSYS,
     [](const Target& target) { return Call(__NR_fchmodat, target.writable, "file", 04777); }},
    {"root of init", ENOENT, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/proc/1/root/etc/passwd", O_RDONLY); }},
    {"own descriptors by path", ENOENT, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY); }},
    {"own memory by path", ENOENT, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/proc/self/mem", O_RDWR); }},
    {"a setting of the kernel", ENOENT, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/proc/sys/kernel/hostname", O_WRONLY); }},
    {"order of being killed", ENOENT, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY); }},
    {"sysfs", ENOENT, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/sys/kernel", O_RDONLY | O_DIRECTORY); }},
    {"the own cgroup", ENOENT, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/proc/self/cgroup", O_RDONLY); }},
    {"a device of the host", ENOENT, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/dev/null", O_RDWR); }},
    {"a terminal of the host", ENOENT, EACCES,
     [](const Target&) { return OpenAt(AT_FDCWD, "/dev/ptmx", O_RDWR); }},
    {"POSIX shared memory", ENOENT, EACCES,
     [](const Target&) {
       return OpenAt(AT_FDCWD, "/dev/shm/bulkhead-hostile", O_CREAT | O_RDWR, 0666);
     }},
};

}  // namespace

const AttemptTable kFiles = {kRows, sizeof kRows / sizeof kRows[0]};
const PathAttemptTable kPaths = {kPathRows, sizeof kPathRows / sizeof kPathRows[0]};

}  // namespace bulkhead::hostile
