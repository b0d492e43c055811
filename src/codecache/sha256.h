// SHA-256, piece by piece. One thread.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace bulkhead::codecache {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  Sha256();

  void Update(std::span<const std::uint8_t> bytes);
  // Once.
  Digest Finish();

 private:
  struct FreeContext {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

}  // namespace bulkhead::codecache
