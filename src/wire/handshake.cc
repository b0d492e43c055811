#include "wire/handshake.h"

#include <fmt/core.h>

#include "base/random_id.h"
#include "base/strings.h"

#ifndef BH_BUILD_ID
#error "BH_BUILD_ID comes from CMake"
#endif

namespace bulkhead::wire {

std::string_view BuildId() {
  return BH_BUILD_ID;
}

Nonce MakeNonce() {
  Nonce nonce;
  FillRandom(nonce);
  return nonce;
}

Status CheckHelloAck(const Hello& sent, const HelloAck& received,
                     const std::optional<std::string>& expected_build) {
  if (received.nonce != sent.nonce) {
    return Fail(ErrorCode::kProtocol, "the worker answered another handshake", 0, "nonce-mismatch");
  }
  if (expected_build && received.build_id != *expected_build) {
    return Fail(
        ErrorCode::kProtocol,
        fmt::format(
            "the worker is of build {}, this program of build {}: install both from one build",
            Quoted(received.build_id), Quoted(*expected_build)),
        0, "build-mismatch");
  }
  return {};
}

}  // namespace bulkhead::wire
