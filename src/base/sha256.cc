#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace bulkhead {

void Sha256::FreeContext::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Result<Sha256> Sha256::Create() {
  Context context(EVP_MD_CTX_new());
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return Fail(ErrorCode::kUnsupported, "SHA-256 is not available in this OpenSSL");
  }
  return Sha256(std::move(context));
}

void Sha256::Update(std::span<const std::uint8_t> bytes) {
  BH_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest{};
  unsigned length = 0;
  BH_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &length) == 1 &&
           length == digest.size());
  return digest;
}

}  // namespace bulkhead
