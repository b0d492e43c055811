// Whatever bytes arrive, the decoders answer: a message that encodes to exactly those bytes, or a
// reason. The first byte chooses the direction, the rest is a stream of frames.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "wire/frame.h"

namespace bulkhead::wire {
namespace {

Result<std::string> DecodeAndEncode(const FrameHeader& header, std::string_view body,
                                    Direction direction) {
  const MessageId id{header.generation, header.request_id};
  if (direction == Direction::kToWorker) {
    return EncodeFrame(id, BH_TRY(DecodeToWorker(header.kind, body)));
  }
  return EncodeFrame(id, BH_TRY(DecodeFromWorker(header.kind, body)));
}

void CheckStream(std::string_view stream, Direction direction) {
  for (;;) {
    const Result<FrameHeader> header = DecodeHeader(stream, direction);
    if (!header) {
      BH_CHECK(header.error().code == ErrorCode::kProtocol);
      BH_CHECK(!header.error().reason.empty());
      return;
    }
    if (stream.size() - kHeaderBytes < header->length) {
      return;
    }
    const std::string_view frame = stream.substr(0, kHeaderBytes + header->length);
    const Result<std::string> again =
        DecodeAndEncode(*header, frame.substr(kHeaderBytes), direction);
    BH_CHECK(again ? *again == frame : !again.error().reason.empty());
    stream.remove_prefix(frame.size());
  }
}

}  // namespace
}  // namespace bulkhead::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using bulkhead::wire::Direction;
  if (size > 0) {
    const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
    bulkhead::wire::CheckStream(stream,
                                (data[0] & 1) != 0 ? Direction::kFromWorker : Direction::kToWorker);
  }
  return 0;
}
