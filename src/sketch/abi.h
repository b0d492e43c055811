// The operation interface of contract/guest_abi.h as types: kinds of operation_submit, status
// bytes, packing, and the bounds that are part of the contract rather than configuration. A test
// compares them with the contract's tables.
#pragma once

#include <cstdint>
#include <optional>

namespace bulkhead::sketch {

// The thread that made a token: 0 is the root, a guest thread's is its TID.
using Owner = std::uint32_t;
inline constexpr Owner kRootOwner = 0;

// The kinds this build can do. The rest of 1...kKindMax belongs to capabilities it lacks.
enum class Kind : std::int32_t {
  kSyntheticYield = 1,
  kSyntheticCreate = 2,
  kSyntheticUse = 3,
  kSyntheticClose = 4,
  kBlobCreate = 5,
  kBlobWrite = 6,
  kBlobRead = 7,
  kCollectRead = 8,
  kBlobSeal = 9,
  kOutputCommit = 10,
  kOutputGrant = 11,
  kClockSleep = 12,
  kAbandonTransfer = 18,
  kAbandonBlob = 19,
  kHashCreate = 30,
  kHashUpdate = 31,
  kHashFinalise = 32,
  kAbandonHash = 33,
  kAbandonHashOperation = 34,
};
inline constexpr std::int32_t kKindMax = 48;

constexpr bool IsKnownKind(std::int32_t kind) {
  return kind >= 1 && kind <= kKindMax;
}

// nullopt: unknown, or of a capability this build lacks (13-17 native views, 20-29 encrypted
// archives, 35-48 compiler processes).
constexpr std::optional<Kind> AvailableKind(std::int32_t kind) {
  if ((kind >= 1 && kind <= 12) || kind == 18 || kind == 19 || (kind >= 30 && kind <= 34)) {
    return static_cast<Kind>(kind);
  }
  return std::nullopt;
}

enum class OperationStatus : std::uint8_t {
  kPending = 0,
  kCompleted = 1,
  kCancelled = 2,
  kTimedOut = 3,
  kTrapped = 4,
  kOwnerExited = 5,
  kClosed = 6,
  kRejected = 7,
};

inline constexpr std::int64_t kRefused = 0;         // operation_submit: no operation came about
inline constexpr std::int64_t kPackedError = 0x80;  // unknown, foreign, consumed or bad destination

// One word for result and status. `payload` is a token (below 2^56), a byte count or 1.
constexpr std::int64_t Packed(std::uint64_t payload, OperationStatus status) {
  return static_cast<std::int64_t>(payload << 8 | static_cast<std::uint64_t>(status));
}

// A range of guest memory in one argument: bytes << 32 | address.
struct GuestRange {
  std::uint32_t address;
  std::uint32_t bytes;

  static constexpr GuestRange Unpack(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
};

inline constexpr std::uint32_t kOperationsMax = 64;   // live and uncollected, per run
inline constexpr std::uint32_t kResourcesMax = 64;    // per run, reserved ones included
inline constexpr std::uint32_t kTombstonesMax = 128;  // closed tokens that are remembered
// Bound of one copy between guest and host, whatever the configured chunk.
inline constexpr std::uint32_t kTransferBytesMax = 65'536;
inline constexpr std::uint64_t kSleepMsMax = 0xffff'ffff;
inline constexpr std::uint64_t kRightsMax = 0xff;
inline constexpr std::uint32_t kDigestBytes = 32;

}  // namespace bulkhead::sketch
