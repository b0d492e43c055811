// What a worker that was taken over would try, and how each attempt has to fail. Plain data and raw
// system calls, without the C++ library and without <cerrno>'s like: programs of two C libraries
// are made of it.
#pragma once

#include <stddef.h>

namespace bulkhead::hostile {

// What the attempts aim at. Paths and process ids are those of the host.
struct Target {
  long parent = 0;
  long sibling = 0;
  unsigned short tcp_port = 0;
  const char* secret = "";       // a file
  const char* new_path = "";     // in the same directory; nothing is there
  const char* socket_path = "";  // a listening AF_UNIX socket
  // Granted directories in the secret's, each with a file "file"; -1: none. The writable one has
  // the links "up" and "absolute" to the secret.
  int read_only = -1;
  int writable = -1;
  int held_stream = -1;  // a stream the worker was given
};

// Instead of an errno.
inline constexpr int kKilled = -1;   // by SIGSYS
inline constexpr int kAllowed = -2;  // is no attack in this phase

// `act` makes the attempt and returns what its last system call did: -errno, or 0 and more.
struct Attempt {
  const char* name;
  int denial;  // from the lock-down on
  long (*act)(const Target&);
  int guest_phase_denial = 0;  // 0: the same
};

// With directory grants, where calls that take paths are permitted. Without, all end with ENOSYS.
struct PathAttempt {
  const char* name;
  int in_empty_root;
  int by_landlock;  // where paths still lead somewhere
  long (*act)(const Target&);
};

struct AttemptTable {
  const Attempt* rows;
  size_t count;
};

extern const AttemptTable kNetwork;
extern const AttemptTable kFiles;
extern const AttemptTable kProcesses;
extern const AttemptTable kMemory;
extern const AttemptTable kKernel;

struct PathAttemptTable {
  const PathAttempt* rows;
  size_t count;
};

extern const PathAttemptTable kPaths;

// nullptr if there is none of that name.
const Attempt* FindAttempt(const char* name);
const PathAttempt* FindPathAttempt(const char* name);

}  // namespace bulkhead::hostile
