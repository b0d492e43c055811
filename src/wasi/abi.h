// The layouts, flags and rights of WASI preview 1 as the guest sees them. Everything here is fixed
// by that interface. Padding is spelt out, so that no byte of ours leaks into the guest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bulkhead::wasi {

enum class FileType : std::uint8_t {
  kUnknown = 0,  // also pipes, for which the interface has no type
  kBlockDevice = 1,
  kCharacterDevice = 2,
  kDirectory = 3,
  kRegularFile = 4,
  kSocketDgram = 5,
  kSocketStream = 6,
  kSymbolicLink = 7,
};

using Rights = std::uint64_t;

namespace rights {
inline constexpr Rights kFdDatasync = 1ULL << 0;
inline constexpr Rights kFdRead = 1ULL << 1;
inline constexpr Rights kFdSeek = 1ULL << 2;
inline constexpr Rights kFdFdstatSetFlags = 1ULL << 3;
inline constexpr Rights kFdSync = 1ULL << 4;
inline constexpr Rights kFdTell = 1ULL << 5;
inline constexpr Rights kFdWrite = 1ULL << 6;
inline constexpr Rights kFdAdvise = 1ULL << 7;
inline constexpr Rights kFdAllocate = 1ULL << 8;
inline constexpr Rights kPathCreateDirectory = 1ULL << 9;
inline constexpr Rights kPathCreateFile = 1ULL << 10;
inline constexpr Rights kPathLinkSource = 1ULL << 11;
inline constexpr Rights kPathLinkTarget = 1ULL << 12;
inline constexpr Rights kPathOpen = 1ULL << 13;
inline constexpr Rights kFdReaddir = 1ULL << 14;
inline constexpr Rights kPathReadlink = 1ULL << 15;
inline constexpr Rights kPathRenameSource = 1ULL << 16;
inline constexpr Rights kPathRenameTarget = 1ULL << 17;
inline constexpr Rights kPathFilestatGet = 1ULL << 18;
inline constexpr Rights kPathFilestatSetSize = 1ULL << 19;
inline constexpr Rights kPathFilestatSetTimes = 1ULL << 20;
inline constexpr Rights kFdFilestatGet = 1ULL << 21;
inline constexpr Rights kFdFilestatSetSize = 1ULL << 22;
inline constexpr Rights kFdFilestatSetTimes = 1ULL << 23;
inline constexpr Rights kPathSymlink = 1ULL << 24;
inline constexpr Rights kPathRemoveDirectory = 1ULL << 25;
inline constexpr Rights kPathUnlinkFile = 1ULL << 26;
inline constexpr Rights kPollFdReadwrite = 1ULL << 27;

// What makes sense on a directory only.
inline constexpr Rights kDirectoryOnly = kPathCreateDirectory | kPathCreateFile | kPathLinkSource |
                                         kPathLinkTarget | kPathOpen | kFdReaddir | kPathReadlink |
                                         kPathRenameSource | kPathRenameTarget | kPathFilestatGet |
                                         kPathFilestatSetSize | kPathFilestatSetTimes |
                                         kPathSymlink | kPathRemoveDirectory | kPathUnlinkFile;
// What makes sense on something with content only.
inline constexpr Rights kFileOnly = kFdRead | kFdSeek | kFdTell | kFdWrite | kFdAdvise |
                                    kFdAllocate | kFdFilestatSetSize | kPollFdReadwrite;
inline constexpr Rights kBoth =
    kFdDatasync | kFdFdstatSetFlags | kFdSync | kFdFilestatGet | kFdFilestatSetTimes;
inline constexpr Rights kDirectory = kDirectoryOnly | kBoth;
inline constexpr Rights kFile = kFileOnly | kBoth;
// Every right path_open can pass on. Socket rights and undefined bits never apply and are ignored
// when asked for.
inline constexpr Rights kAll = kDirectory | kFile;
}  // namespace rights

namespace fdflags {
inline constexpr std::uint16_t kAppend = 1;
inline constexpr std::uint16_t kDsync = 2;
inline constexpr std::uint16_t kNonblock = 4;
inline constexpr std::uint16_t kRsync = 8;
inline constexpr std::uint16_t kSync = 16;
inline constexpr std::uint16_t kAll = 31;
}  // namespace fdflags

namespace oflags {
inline constexpr std::uint16_t kCreat = 1;
inline constexpr std::uint16_t kDirectory = 2;
inline constexpr std::uint16_t kExcl = 4;
inline constexpr std::uint16_t kTrunc = 8;
inline constexpr std::uint16_t kAll = 15;
}  // namespace oflags

namespace fstflags {
inline constexpr std::uint16_t kAtim = 1;
inline constexpr std::uint16_t kAtimNow = 2;
inline constexpr std::uint16_t kMtim = 4;
inline constexpr std::uint16_t kMtimNow = 8;
inline constexpr std::uint16_t kAll = 15;
}  // namespace fstflags

inline constexpr std::uint32_t kLookupSymlinkFollow = 1;

inline constexpr std::uint8_t kWhenceSet = 0;
inline constexpr std::uint8_t kWhenceCur = 1;
inline constexpr std::uint8_t kWhenceEnd = 2;

struct GuestIovec {
  std::uint32_t address = 0;
  std::uint32_t bytes = 0;
};

struct Fdstat {
  FileType filetype = FileType::kUnknown;
  std::uint8_t padding = 0;
  std::uint16_t flags = 0;
  std::uint32_t padding2 = 0;
  Rights rights_base = 0;
  Rights rights_inheriting = 0;
};

struct Filestat {
  std::uint64_t dev = 0;
  std::uint64_t ino = 0;
  FileType filetype = FileType::kUnknown;
  std::uint8_t padding[7] = {};
  std::uint64_t nlink = 0;
  std::uint64_t size = 0;
  std::uint64_t atim_ns = 0;
  std::uint64_t mtim_ns = 0;
  std::uint64_t ctim_ns = 0;
};

struct Dirent {  // followed by the name, without a NUL
  std::uint64_t next = 0;
  std::uint64_t ino = 0;
  std::uint32_t name_bytes = 0;
  FileType filetype = FileType::kUnknown;
  std::uint8_t padding[3] = {};
};

struct Prestat {
  std::uint32_t tag = 0;  // 0: directory, the only kind
  std::uint32_t name_bytes = 0;
};

enum class EventType : std::uint8_t { kClock = 0, kFdRead = 1, kFdWrite = 2 };

inline constexpr std::uint16_t kSubclockAbstime = 1;
inline constexpr std::uint16_t kEventHangup = 1;

struct SubscriptionClock {
  std::uint32_t id = 0;
  std::uint32_t padding = 0;
  std::uint64_t timeout_ns = 0;
  std::uint64_t precision_ns = 0;
  std::uint16_t flags = 0;
  std::uint8_t padding2[6] = {};
};

struct Subscription {
  std::uint64_t userdata = 0;
  EventType type = EventType::kClock;
  std::uint8_t padding[7] = {};
  SubscriptionClock clock;  // for the descriptor types only `clock.id` counts: it is the descriptor
};

struct Event {
  std::uint64_t userdata = 0;
  std::uint16_t error = 0;
  EventType type = EventType::kClock;
  std::uint8_t padding[5] = {};
  std::uint64_t bytes = 0;
  std::uint16_t flags = 0;
  std::uint8_t padding2[6] = {};
};

static_assert(sizeof(GuestIovec) == 8);
static_assert(sizeof(Fdstat) == 24 && offsetof(Fdstat, flags) == 2);
static_assert(sizeof(Filestat) == 64 && offsetof(Filestat, nlink) == 24);
static_assert(sizeof(Dirent) == 24 && offsetof(Dirent, filetype) == 20);
static_assert(sizeof(Prestat) == 8);
static_assert(sizeof(Subscription) == 48 && offsetof(Subscription, clock) == 16);
static_assert(sizeof(Event) == 32 && offsetof(Event, type) == 10 && offsetof(Event, bytes) == 16);

}  // namespace bulkhead::wasi
