// Both halves of the opening: exact protocol version (in every header), echoed nonce, build
// identity.
#pragma once

#include <bulkhead/result.h>

#include <optional>
#include <string>
#include <string_view>

#include "wire/messages.h"

namespace bulkhead::wire {

// Identity of this build: version plus a digest of the sources; parent and worker of one build
// agree.
std::string_view BuildId();

// A fresh random nonce for one worker.
Nonce MakeNonce();

// Does the answer belong to this Hello? kProtocol with reason nonce-mismatch or build-mismatch.
// `expected_build`: nullopt for worker programs that are not ours.
Status CheckHelloAck(const Hello& sent, const HelloAck& received,
                     const std::optional<std::string>& expected_build);

}  // namespace bulkhead::wire
