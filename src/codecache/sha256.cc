#include "codecache/sha256.h"

#include "base/check.h"

namespace bulkhead::codecache {

// The library computes it without anything that could fail but memory.
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  BH_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::Update(std::span<const std::uint8_t> bytes) {
  BH_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Digest Sha256::Finish() {
  Digest digest{};
  unsigned length = 0;
  BH_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &length) == 1 &&
           length == digest.size());
  return digest;
}

}  // namespace bulkhead::codecache
