// The 24-byte header in front of every message, checked before anything is allocated.
//
//   offset  0 magic u32 "BKHD" | 4 version u16 | 6 kind u8 | 7 flags u8 (0) | 8 length u32 | 12
//   generation u32 | 16 request id u64 (not 0); all little-endian; then `length` bytes of body.
#pragma once

#include <bulkhead/result.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/messages.h"

namespace bulkhead::wire {

inline constexpr std::uint32_t kMagic = 0x44484B42;  // "BKHD" in memory order
inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::size_t kHeaderBytes = 24;

// Which way a frame travels decides which kinds and lengths are legal.
enum class Direction : std::uint8_t { kToWorker, kFromWorker };

struct FrameHeader {
  Kind kind = Kind::kHello;
  std::uint32_t length = 0;
  std::uint32_t generation = 0;
  std::uint64_t request_id = 0;
};

// Who a message belongs to; a one-shot worker has generation 1 and one request.
struct MessageId {
  std::uint32_t generation = 1;
  std::uint64_t request_id = 0;

  friend bool operator==(const MessageId&, const MessageId&) = default;
};

// kProtocol with reason bad-magic, unsupported-version, unknown-kind, invalid-payload (flags),
// invalid-request-id or frame-too-large.
Result<FrameHeader> DecodeHeader(std::string_view bytes, Direction direction);
std::array<char, kHeaderBytes> EncodeHeader(const FrameHeader& header);

// A whole frame. kProtocol (a bug of the sender) if the message breaks its own bounds: an illegal
// frame is never sent.
Result<std::string> EncodeFrame(MessageId id, const ToWorker& message);
Result<std::string> EncodeFrame(MessageId id, const FromWorker& message);

// kProtocol with reason truncated, trailing-bytes, invalid-payload, module-too-large or
// invalid-terminal.
Result<ToWorker> DecodeToWorker(Kind kind, std::string_view body);
Result<FromWorker> DecodeFromWorker(Kind kind, std::string_view body);

}  // namespace bulkhead::wire
