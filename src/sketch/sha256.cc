// The low-level functions, deprecated or not: they are a few kilobytes of a static library, while
// the high-level ones load providers and configuration, which a worker neither may nor needs to.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "sketch/sha256.h"

#include <openssl/sha.h>

#include "base/check.h"

namespace bulkhead::sketch {

static_assert(kDigestBytes == SHA256_DIGEST_LENGTH);

struct Sha256::State {
  SHA256_CTX context;
};

// These calls answer 1 whatever they are given.
Sha256::Sha256() : state_(std::make_unique<State>()) {
  BH_CHECK(SHA256_Init(&state_->context) == 1);
}

Sha256::~Sha256() = default;

void Sha256::Update(std::span<const std::uint8_t> bytes) {
  BH_CHECK(SHA256_Update(&state_->context, bytes.data(), bytes.size()) == 1);
}

std::array<std::uint8_t, kDigestBytes> Sha256::Finish() {
  std::array<std::uint8_t, kDigestBytes> digest;
  BH_CHECK(SHA256_Final(digest.data(), &state_->context) == 1);
  return digest;
}

}  // namespace bulkhead::sketch
