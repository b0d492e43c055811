#include "wire/frame.h"

#include <fmt/core.h>

#include <cstring>

#include "wire/message_rules.h"

namespace bulkhead::wire {
namespace {

template <class T>
T Load(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void Store(std::array<char, kHeaderBytes>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

tl::unexpected<Error> ProtocolFail(std::string_view reason, std::string message) {
  return Fail(ErrorCode::kProtocol, std::move(message), 0, std::string(reason));
}

bool KindTravels(std::uint8_t kind, Direction direction) {
  switch (static_cast<Kind>(kind)) {
    case Kind::kHello:
    case Kind::kExecute:
    case Kind::kCancel:
      return direction == Direction::kToWorker;
    case Kind::kHelloAck:
    case Kind::kReady:
    case Kind::kStarted:
    case Kind::kTrace:
    case Kind::kTerminal:
      return direction == Direction::kFromWorker;
  }
  return false;
}

template <class Variant>
Result<std::string> Encode(MessageId id, const Variant& message) {
  return std::visit(
      [&](const auto& m) -> Result<std::string> {
        using M = std::decay_t<decltype(m)>;
        BinaryWriter writer;
        M::Fields(writer, m);
        std::string_view problem = writer.ok() ? ProblemOf(m) : "invalid-payload";
        if (id.request_id == 0) {
          problem = "invalid-request-id";
        }
        if (!problem.empty()) {
          return ProtocolFail(problem, fmt::format("refusing to send message kind {}: {}",
                                                   static_cast<int>(M::kKind), problem));
        }
        const std::string body = std::move(writer).Take();
        const FrameHeader header{M::kKind, static_cast<std::uint32_t>(body.size()), id.generation,
                                 id.request_id};
        const auto head = EncodeHeader(header);
        return std::string(head.data(), head.size()) + body;
      },
      message);
}

template <class M, class Variant>
Result<Variant> DecodeAs(std::string_view body) {
  M message;
  BinaryReader reader(body);
  M::Fields(reader, message);
  std::string_view problem = reader.Finish() ? ProblemOf(message) : reader.problem();
  if (!problem.empty()) {
    return ProtocolFail(problem, fmt::format("message kind {} of {} bytes: {}",
                                             static_cast<int>(M::kKind), body.size(), problem));
  }
  return Variant(std::move(message));
}

template <class Variant, std::size_t I = 0>
Result<Variant> DecodeBody(Kind kind, std::string_view body) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return ProtocolFail("unknown-kind",
                        fmt::format("message kind {} is not known here", static_cast<int>(kind)));
  } else {
    using M = std::variant_alternative_t<I, Variant>;
    return kind == M::kKind ? DecodeAs<M, Variant>(body) : DecodeBody<Variant, I + 1>(kind, body);
  }
}

}  // namespace

Result<FrameHeader> DecodeHeader(std::string_view bytes, Direction direction) {
  if (bytes.size() < kHeaderBytes) {
    return ProtocolFail("truncated", fmt::format("frame header of {} bytes", bytes.size()));
  }
  if (Load<std::uint32_t>(bytes, 0) != kMagic) {
    return ProtocolFail("bad-magic", fmt::format("frame starts with {:#010x}, not BKHD",
                                                 Load<std::uint32_t>(bytes, 0)));
  }
  if (const auto version = Load<std::uint16_t>(bytes, 4); version != kProtocolVersion) {
    return ProtocolFail(
        "unsupported-version",
        fmt::format("protocol version {}, this side speaks {}", version, kProtocolVersion));
  }
  const auto kind = Load<std::uint8_t>(bytes, 6);
  if (!KindTravels(kind, direction)) {
    return ProtocolFail("unknown-kind",
                        fmt::format("message kind {} does not travel this way", kind));
  }
  if (Load<std::uint8_t>(bytes, 7) != 0) {
    return ProtocolFail("invalid-payload", "frame flags are not 0");
  }
  const auto length = Load<std::uint32_t>(bytes, 8);
  const std::uint32_t length_max =
      direction == Direction::kToWorker ? kToWorkerBytesMax : kFromWorkerBytesMax;
  if (length > length_max) {
    return ProtocolFail("frame-too-large",
                        fmt::format("body of {} bytes, at most {}", length, length_max));
  }
  const auto request_id = Load<std::uint64_t>(bytes, 16);
  if (request_id == 0) {
    return ProtocolFail("invalid-request-id", "request id 0");
  }
  return FrameHeader{static_cast<Kind>(kind), length, Load<std::uint32_t>(bytes, 12), request_id};
}

std::array<char, kHeaderBytes> EncodeHeader(const FrameHeader& header) {
  std::array<char, kHeaderBytes> bytes{};
  Store(bytes, 0, kMagic);
  Store(bytes, 4, kProtocolVersion);
  Store(bytes, 6, static_cast<std::uint8_t>(header.kind));
  Store(bytes, 8, header.length);
  Store(bytes, 12, header.generation);
  Store(bytes, 16, header.request_id);
  return bytes;
}

Result<std::string> EncodeFrame(MessageId id, const ToWorker& message) {
  return Encode(id, message);
}

Result<std::string> EncodeFrame(MessageId id, const FromWorker& message) {
  return Encode(id, message);
}

Result<ToWorker> DecodeToWorker(Kind kind, std::string_view body) {
  return DecodeBody<ToWorker>(kind, body);
}

Result<FromWorker> DecodeFromWorker(Kind kind, std::string_view body) {
  return DecodeBody<FromWorker>(kind, body);
}

}  // namespace bulkhead::wire
